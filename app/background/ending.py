"""A flag of this process. The server's first module imports this one, so it imports nothing else of Easel."""

import threading

# Set when this process is told to stop: `/ready` then lets load balancers send new visitors elsewhere.
PROCESS_IS_ENDING = threading.Event()
