"""Model servers of others as pods: images, workloads, and what a service says of them."""
