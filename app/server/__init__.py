"""The server: the command `easel serve`, its processes, and the limits of its HTTP protocol.

Main types: `WorkerSupervisor` (starts and replaces workers), `OrderlyServer` (uvicorn's server in a process),
`LimitedHttpProtocol` (one connection). `addresses` has the address that links begin with.

Open `serve.py` first (from the command to the first request), then `processes.py` and `http_protocol.py`.
"""
