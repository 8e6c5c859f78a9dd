"""Plants bugs in the decision and the controller's guards; measures the share that tests catch."""
