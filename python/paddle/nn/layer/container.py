"""Layers in order."""
from paddle._graph import Parameter
from paddle.nn.layer.layers import Layer


class Sequential(Layer):
    """One after the other: Sequential(a, b) or Sequential(('first', a), ('second', b))."""

    def __init__(self, *layers):
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], (list, dict)) and not isinstance(layers[0], Layer):
            layers = list(layers[0].items()) if isinstance(layers[0], dict) else layers[0]
        for i, layer in enumerate(layers):
            name, layer = layer if isinstance(layer, (tuple, list)) else (str(i), layer)
            self.add_sublayer(name, layer)

    def __getitem__(self, index):
        if isinstance(index, str):
            return self._sub_layers[index]
        values = list(self._sub_layers.values())
        return Sequential(*values[index]) if isinstance(index, slice) else values[index]

    def __len__(self):
        return len(self._sub_layers)

    def __iter__(self):
        return iter(self._sub_layers.values())

    def forward(self, input):
        for layer in self._sub_layers.values():
            input = layer(input)
        return input


class LayerList(Layer):
    def __init__(self, sublayers=None):
        super().__init__()
        for layer in sublayers or []:
            self.append(layer)

    def append(self, sublayer):
        self.add_sublayer(str(len(self._sub_layers)), sublayer)
        return self

    def extend(self, sublayers):
        for layer in sublayers:
            self.append(layer)
        return self

    def insert(self, index, sublayer):
        layers = list(self._sub_layers.values())
        layers.insert(index, sublayer)
        self._sub_layers.clear()
        self.extend(layers)

    def __getitem__(self, index):
        values = list(self._sub_layers.values())
        return LayerList(values[index]) if isinstance(index, slice) else values[index]

    def __setitem__(self, index, layer):
        self._sub_layers[str(range(len(self))[index])] = layer

    def __len__(self):
        return len(self._sub_layers)

    def __iter__(self):
        return iter(self._sub_layers.values())


class LayerDict(Layer):
    def __init__(self, sublayers=None):
        super().__init__()
        self.update(sublayers or {})

    def update(self, sublayers):
        for name, layer in (sublayers.items() if isinstance(sublayers, dict) else sublayers):
            self.add_sublayer(name, layer)

    def __getitem__(self, key):
        return self._sub_layers[key]

    def __setitem__(self, key, layer):
        self.add_sublayer(key, layer)

    def __len__(self):
        return len(self._sub_layers)

    def __iter__(self):
        return iter(self._sub_layers)

    def __contains__(self, key):
        return key in self._sub_layers

    def keys(self):
        return self._sub_layers.keys()

    def values(self):
        return self._sub_layers.values()

    def items(self):
        return self._sub_layers.items()


class ParameterList(Layer):
    def __init__(self, parameters=None):
        super().__init__()
        for parameter in parameters or []:
            self.append(parameter)

    def append(self, parameter):
        if not isinstance(parameter, Parameter):
            raise TypeError(f"ParameterList takes parameters, not {type(parameter).__name__}")
        self._parameters[str(len(self._parameters))] = parameter
        return self

    def __getitem__(self, index):
        return list(self._parameters.values())[index]

    def __len__(self):
        return len(self._parameters)

    def __iter__(self):
        return iter(self._parameters.values())
