"""Parameters of a model as a file."""
import os
from typing import List, Union

from paddle import static
from paddle._native import native


class Parameters:
    """For models with `main_prog` and _outputs(), the variables that inference computes."""

    def _outputs(self):
        raise NotImplementedError

    def parameter_list(self) -> List[str]:
        """Names of the parameters."""
        return [p.name for p in self.main_prog.all_parameters()]

    def _state(self):
        """What makes a trained network: parameters, and the moving means of its norms."""
        test = self.main_prog.clone(for_test=True)._prune(self._outputs())
        return test.ir.persistables()

    def save_params(self, path: Union[str, os.PathLike]) -> None:
        """Writes `path`, a safetensors file, with all that inference needs. (In a job with servers these have the
        parameters: fleet.save_persistables and save_inference_model.)"""
        scope = static.global_scope()
        missing = [name for name in self._state() if scope.find_var(name) is None]
        if missing:
            raise native.InvalidArgumentError(f"'{missing[0]}' has no value yet: run startup_prog first")
        tensors = {name: scope.find_var(name).get_tensor().numpy() for name in self._state()}
        native.save_tensors(os.fspath(path), tensors, {"model": type(self).__name__})

    def load_params(self, path: Union[str, os.PathLike]) -> None:
        """Reads what save_params wrote. Run startup_prog before; what the file lacks is an error."""
        tensors, _ = native.load_tensors(os.fspath(path))
        missing = [name for name in self._state() if name not in tensors]
        if missing:
            raise native.InvalidArgumentError(f"{path}: has no '{missing[0]}'")
        for name in self._state():
            static.global_scope().var(name).get_tensor().set(tensors[name])
