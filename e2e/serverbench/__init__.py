"""The model server beside other servers, on one machine, under one load."""
