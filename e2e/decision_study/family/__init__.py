"""A family of random workloads, plants, cold starts, routings and clients, in two sets by seed.

Constants of the decision are chosen on the set `develop` only; the set `judge` shows whether
they hold for workloads that decided none of them.

- drawn workloads: members, draws, loads, rates, instants, plants, client_draws; named ones: hard
- autoscalers and their settings: peers
- runs: performing, watched, kept, measures, cell_results
- judgement and tables: verdicts, summary
- commands: command, samples; what Headroom pays beyond the clairvoyant: excess, excess_command;
  the best reactive autoscaler in hindsight: reactive, reactive_command
"""
