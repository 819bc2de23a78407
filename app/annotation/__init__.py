"""Annotation: everything that annotators go through, from their arrival to the stored answer.

`platforms` handles how annotators arrive and return, and each platform's result files. `onboarding` has the steps
before the first HIT. `hits` chooses, leases and serves HITs and stores the answers.

Open `hits/pages/annotator.py` first: it handles an annotator's requests and calls the other two rooms.
"""
