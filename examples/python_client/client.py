"""What the scripts share: the stubs, the address, and NumPy arrays as tensors."""
import argparse
import contextlib
import os
import sys

import grpc
import numpy as np

# The stubs import each other by their proto paths, so their folder has to be on the path.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "gen"))
try:
    import inference_pb2
    import inference_pb2_grpc
    from inference.v1 import model_inference_pb2
    from inference.v1 import model_inference_pb2_grpc
except ImportError as error:
    sys.exit("Cannot import the stubs (%s): run ./generate.sh first" % error)

# The library's own limit of 4 MiB is too small for tensors; this is the server's.
MAX_BYTES = 64 * 1024 * 1024


# Pings find out within half a minute that a network is gone which says nothing, and keep quiet streams open through
# proxies. The server pings too, each 30 s; it takes as many as one each 10 s.
KEEPALIVE = [
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),  # go on pinging while a stream is quiet
]
# A connection that breaks is made again after 0.1 s, then 0.16 s, ... 5 s; the library's own first wait is 1 s.
BACK_OFF = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 5000)]


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--address", default="127.0.0.1:50051", help="HOST:PORT of the server")
    return parser


def open_channel(address):
    limits = [("grpc.max_send_message_length", MAX_BYTES), ("grpc.max_receive_message_length", MAX_BYTES)]
    return grpc.insecure_channel(address, options=limits + KEEPALIVE + BACK_OFF)


@contextlib.contextmanager
def connect(address):
    """A channel; an error of a call made on it ends the script with its status and message."""
    with open_channel(address) as channel:
        try:
            yield channel
        except grpc.RpcError as error:
            sys.exit("%s: %s" % (error.code().name, error.details()))


def to_tensor(array):
    array = np.asarray(array)
    return inference_pb2.TensorData(data=array.tobytes(), shape=array.shape, dtype=str(array.dtype))


def to_array(tensor):
    return np.frombuffer(tensor.data, dtype=np.dtype(tensor.dtype)).reshape(tuple(tensor.shape))
