"""The network of functions/digits under MLServer, as a custom runtime."""
import numpy as np
import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse
from mlserver.utils import get_model_uri


class Digits(MLModel):
    async def load(self) -> bool:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(await get_model_uri(self._settings), options)
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        images = NumpyCodec.decode_input(payload.inputs[0]).astype(np.float32).reshape(-1, 1, 28, 28)
        (probabilities,) = self.session.run(None, {"image": images})
        output = NumpyCodec.encode_output("probabilities", probabilities)
        return InferenceResponse(model_name=self.name, outputs=[output])
