"""Pages and forms of analyses: the analysis page, downloads and remarks."""
