"""Line charts as SVG text: scales, curves, and pictures that stand alone."""
