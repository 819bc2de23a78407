"""API routes of analyses: posteriors, exports, verification, scores, tables and remarks."""
