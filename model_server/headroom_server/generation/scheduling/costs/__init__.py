"""What is learned of iterations and answers: their time and length, and the pace to keep. Pure."""
