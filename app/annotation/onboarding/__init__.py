"""What comes before the work: one step after another (`STEPS`), and what each annotator did in them."""
