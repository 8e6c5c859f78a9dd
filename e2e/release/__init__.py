"""What a publisher puts out beside the images: chart, bills of materials, checksums, signatures."""
