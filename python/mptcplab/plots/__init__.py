"""Elements that all plots share: styles, panels, sizes, legends, and how a figure becomes a file or part of a page."""
