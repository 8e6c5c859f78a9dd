"""Third-party model servers as pods: images, workloads, InferenceServices."""
