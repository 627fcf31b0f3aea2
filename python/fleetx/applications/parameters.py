"""Parameters of a model as a file."""
import os
from typing import List, Union

from fleetx.applications.recommend import Recommended
from paddle import static
from paddle._native import native


class Parameters(Recommended):
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
        native.save_tensors(os.fspath(path), self._state_values(), {"model": type(self).__name__})

    def _state_values(self):
        scope = static.global_scope()
        missing = [name for name in self._state() if scope.find_var(name) is None]
        if missing:
            raise native.InvalidArgumentError(f"'{missing[0]}' has no value yet: run startup_prog first")
        return {name: scope.find_var(name).get_tensor().numpy() for name in self._state()}

    def _set_state(self, values, source):
        """Values of parameters; one of another shape is an error that names it."""
        scope = static.global_scope()
        for name, value in values.items():
            wanted = list(self.main_prog.ir.shape(name))
            if list(value.shape) != wanted:
                raise native.InvalidArgumentError(f"{source}: '{name}' has the shape {list(value.shape)}, the model {wanted}; "
                                                  "make the model with the sizes of the file")
        for name, value in values.items():
            scope.var(name).get_tensor().set(value)

    def load_params(self, path: Union[str, os.PathLike]) -> None:
        """Reads what save_params wrote. Run startup_prog before; what the file or the model lacks is an error."""
        self._load_state(path, self._state())

    def _load_state(self, path, names, left_out=lambda name: False):
        """left_out -- which of the file's tensors this model need not have"""
        path = os.fspath(path)
        tensors, about = native.load_tensors(path)
        unlike = [f"has no '{name}'" for name in names if name not in tensors]
        unlike += [f"has '{name}', which this model has not" for name in tensors if name not in names and not left_out(name)]
        if unlike:
            raise native.InvalidArgumentError(f"{path}: {unlike[0]}; it is of a {about.get('model', 'model')} of another size or kind")
        self._set_state({name: tensors[name] for name in names}, path)
