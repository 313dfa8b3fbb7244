"""Gymnasium's MuJoCo tasks, stepped many at a time, and with horizons that nothing shortens."""
