"""The steps of a decision, in this order, each (state, ...) -> state or value.

- before the rules: pace, learning, replacing, tick_model
- its models: latency_model for batches; generating, with generation_judgement, for generated text
- the rules: waiting and forecasting for them, recommending
- after the rules: generation_rules, correcting, rebalancing, limiting
"""
