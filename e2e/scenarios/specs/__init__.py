"""What the API server stores of a service, and with which message it rejects the rest."""
