"""What the four scripts share: the stubs, the address, and NumPy arrays as tensors."""
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


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--address", default="127.0.0.1:50051", help="HOST:PORT of the server")
    return parser


@contextlib.contextmanager
def connect(address):
    """A channel; an error of a call made on it ends the script with its status and message."""
    options = [("grpc.max_send_message_length", MAX_BYTES), ("grpc.max_receive_message_length", MAX_BYTES)]
    with grpc.insecure_channel(address, options=options) as channel:
        try:
            yield channel
        except grpc.RpcError as error:
            sys.exit("%s: %s" % (error.code().name, error.details()))


def to_tensor(array):
    array = np.asarray(array)
    return inference_pb2.TensorData(data=array.tobytes(), shape=array.shape, dtype=str(array.dtype))


def to_array(tensor):
    return np.frombuffer(tensor.data, dtype=np.dtype(tensor.dtype)).reshape(tuple(tensor.shape))
