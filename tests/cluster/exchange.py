"""A rank of two that sends to the other and receives from it at once; it prints its bytes per second."""

import os
import socket
import sys
import threading
import time

rank = int(os.environ["RANK"])
total = int(sys.argv[1])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))

if rank == 0:
    connection, _ = socket.create_server(address).accept()
else:
    deadline = time.monotonic() + 20
    while True:
        try:
            connection = socket.create_connection(address)
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)

sender = threading.Thread(target=connection.sendall, args=(bytes(total),))
sender.start()
got = 0
# Until both directions have found their pace.
while got < total // 2:
    got += len(connection.recv(1 << 16))
first, uncounted = time.monotonic(), got
while got < total:
    got += len(connection.recv(1 << 16))
# In one piece, since ranks share the way out.
sys.stdout.write(f"{(got - uncounted) / (time.monotonic() - first)}\n")
sys.stdout.flush()
sender.join()
