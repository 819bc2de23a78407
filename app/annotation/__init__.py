"""Annotation: everything that annotators meet, from their arrival to the stored answer.

`platforms` are the ways to arrive and to return, and the result files of each platform. `onboarding` are the steps
before the first HIT. `hits` chooses, leases and serves HITs and stores the answers.

Open `hits/pages.py` first: it handles an annotator's requests and calls the other two rooms.
"""
