"""Pages of annotators: the onboarding steps (`steps`), and HITs with everything around them (`annotator`)."""
