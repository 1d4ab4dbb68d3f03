"""The board: enrolment with it, and what is pushed to it. The only room that speaks HTTP."""
