"""What serves pages: endpoint, guard, connections, workers and streams."""
