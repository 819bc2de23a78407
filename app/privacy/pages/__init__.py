"""Pages of people's data: for researchers (`researcher`), and the withdrawal of an annotator (`withdraw`)."""
