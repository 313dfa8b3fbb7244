"""Run folders on disk: manifests, states and metrics."""
