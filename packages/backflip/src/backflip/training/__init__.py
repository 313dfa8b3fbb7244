"""What `train` and `teach` share: sessions on disk, progress, results; and `train` itself."""
