"""Line charts as SVG: scales, curves and complete pictures."""
