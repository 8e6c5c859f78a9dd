"""All replicas of a generating service: how many keep the promises, surges, and admission."""
