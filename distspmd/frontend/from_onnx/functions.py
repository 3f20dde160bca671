"""Operators that ONNX, or a model, defines by others: their bodies with the node's own names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import onnx
from onnx import defs


def body_of(
    node: onnx.NodeProto, opset: int, inputs: Sequence[onnx.TypeProto]
) -> onnx.FunctionProto | None:
    """What ONNX defines an operator by, for inputs of these types; None if it is basic."""
    try:
        schema: Any = defs.get_schema(node.op_type, opset, node.domain)
    except defs.SchemaError:
        return None
    text = b""
    if schema.has_function:
        text = schema.get_function_with_opset_version(
            _nearest(schema.function_opset_versions, opset)
        )
    elif schema.has_context_dependent_function:
        known = onnx.NodeProto()
        known.CopyFrom(node)
        text = schema.get_context_dependent_function_with_opset_version(
            _nearest(schema.context_dependent_function_opset_versions, opset),
            known.SerializeToString(),
            [each.SerializeToString() for each in inputs],
        )
    if not text:
        return None
    body = onnx.FunctionProto()
    body.ParseFromString(text)
    named = {attribute.name for attribute in body.attribute_proto}
    for name, attribute in schema.attributes.items():  # what the node may leave out
        if attribute.default_value.name and name not in named:
            body.attribute_proto.append(attribute.default_value)
    return body


def _nearest(versions: Sequence[int], opset: int) -> int:
    return max((v for v in versions if v <= opset), default=min(versions))


def expand_function(node: onnx.NodeProto, body: onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a body in place of a node: its names and attributes are put in."""
    names = {"": ""} | dict.fromkeys(body.input, "")
    names |= dict(zip(body.input, node.input, strict=False))
    names |= {f: o for f, o in zip(body.output, node.output, strict=False) if o}
    prefix = next(filter(None, node.output))
    attributes = {a.name: a for a in (*body.attribute_proto, *node.attribute)}
    for inner in body.node:
        twin = onnx.NodeProto()
        twin.CopyFrom(inner)
        del twin.input[:], twin.output[:], twin.attribute[:]
        twin.input.extend(names.get(x, f"{prefix}/{x}") for x in inner.input)
        twin.output.extend(names.get(x, f"{prefix}/{x}") for x in inner.output)
        for attribute in inner.attribute:
            source = attribute
            if attribute.ref_attr_name:
                if attribute.ref_attr_name not in attributes:
                    continue
                source = attributes[attribute.ref_attr_name]
            twin.attribute.add().CopyFrom(source)
            twin.attribute[-1].name = attribute.name
        yield twin
