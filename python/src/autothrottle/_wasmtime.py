"""The component in wasmtime: the one file that knows wasmtime-py.

wasmtime-py reads the types of a function and of all that is in them anew at each call, which is most of its
time. So the types are read once here, into functions that write to and read from its C structures. That part
is private to it and it has a new major release each month: where it has changed, and where somebody sets
``AUTOTHROTTLE_PUBLIC_WASMTIME``, the public way is taken, which is slower by a factor of three.

Values are plain on both ways: a record is a tuple in the order of its fields, a variant is
``(case, payload)``, an enum is a string, an option is ``None`` or its value, and an error is returned as
``Err``.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from typing import Any, NamedTuple

import wasmtime
from wasmtime import component as wc

THROTTLING = "autothrottle:engine/throttling@0.1.0"
READING = "autothrottle:engine/reading@0.1.0"

Function = Callable[..., Any]


class Err(NamedTuple):
    """The error of a result."""

    error: Any


_loaded: tuple[wasmtime.Engine, wc.Component] | None = None


def _load() -> tuple[wasmtime.Engine, wc.Component]:
    """Compiles the component once a process; the machine code is kept in wasmtime's cache on disk."""
    global _loaded
    if _loaded is None:
        config = wasmtime.Config()
        try:
            config.cache = True
        except wasmtime.WasmtimeError:
            config = wasmtime.Config()  # No folder to write to: each process compiles for itself.
        engine = wasmtime.Engine(config)
        bytes_ = files(__package__).joinpath("engine.wasm").read_bytes()
        _loaded = engine, wc.Component(engine, bytes_)
    return _loaded


class Instance:
    """An instance of the component with memory of its own. One thread at a time."""

    def __init__(self, *, private: bool | None = None) -> None:
        engine, component = _load()
        self._store = wasmtime.Store(engine)
        self._instance = wc.Linker(engine).instantiate(self._store, component)
        self._private = _prefers_private() if private is None else private

    @property
    def is_private(self) -> bool:
        """Whether wasmtime-py's private parts are used."""
        return self._private

    def function(self, interface: str, name: str) -> Function:
        """A function of the component that takes and gives plain values."""
        func = self._public(interface, name)
        return _fast(self._store, func) if self._private else _slow(self._store, func)

    def construct(self, interface: str, resource: str, *arguments: Any) -> Any:
        """A resource, or ``Err``."""
        return _slow(self._store, self._public(interface, f"[constructor]{resource}"))(*arguments)

    def methods(self, interface: str, resource: str, handle: Any) -> dict[str, Function]:
        """The resource's methods by name, each found when it is first asked for."""
        return _Methods(lambda name: partial(self.function(interface, f"[method]{resource}.{name}"), handle))

    def close(self) -> None:
        """Gives the memory back. Nothing may be called afterwards."""
        self._store.close()

    def _public(self, interface: str, name: str) -> wc.Func:
        root = self._instance.get_export_index(self._store, interface)
        index = self._instance.get_export_index(self._store, name, root)
        func = None if index is None else self._instance.get_func(self._store, index)
        if func is None:
            raise LookupError(f"the component has no {name} in {interface}")
        return func


class _Methods(dict[str, Function]):
    def __init__(self, find: Callable[[str], Function]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, name: str) -> Function:
        function = self[name] = self._find(name)
        return function


_private_works: bool | None = None


def _prefers_private() -> bool:
    """Whether the private parts are there and do what they should, tried once."""
    global _private_works
    if os.environ.get("AUTOTHROTTLE_PUBLIC_WASMTIME"):
        return False
    if _private_works is None:
        _private_works = False
        try:
            nearest = Instance(private=True).function(THROTTLING, "nearest")
            _private_works = nearest("dela", ["rate", "delay"]) == "delay"
        except Exception:  # Whatever it is: the public way is there.
            pass
    return _private_works


# The public way.


def _slow(store: wasmtime.Store, func: wc.Func) -> Function:
    kind = func.type(store)
    parameters = [type_ for _, type_ in kind.params]
    result = kind.result

    def call(*values: Any) -> Any:
        arguments = [_to_public(*pair) for pair in zip(parameters, values, strict=True)]
        answer = func(store, *arguments)
        return None if result is None else _from_public(result, answer)

    return call


def _to_public(type_: Any, value: Any) -> Any:
    if isinstance(type_, wc.OptionType):
        return None if value is None else _to_public(type_.payload, value)
    if isinstance(type_, wc.ListType):
        if isinstance(value, bytes):
            return value
        element = type_.element
        return [_to_public(element, item) for item in value]
    if isinstance(type_, wc.TupleType):
        return tuple(_to_public(*pair) for pair in zip(type_.elements, value, strict=True))
    if isinstance(type_, wc.RecordType):
        record = wc.Record()
        for (name, field), item in zip(type_.fields, value, strict=True):
            setattr(record, name, _to_public(field, item))
        return record
    if isinstance(type_, wc.VariantType):
        case, payload = value
        kind = dict(type_.cases)[case]
        payload = None if kind is None else _to_public(kind, payload)
        return wc.Variant(case, payload) if _is_tagged(type_.cases) else payload
    if isinstance(type_, wc.FlagsType):
        return set(value)
    return value


def _from_public(type_: Any, value: Any) -> Any:
    if isinstance(type_, wc.OptionType):
        return None if value is None else _from_public(type_.payload, value)
    if isinstance(type_, wc.ListType):
        element = type_.element
        return value if isinstance(value, bytes) else [_from_public(element, item) for item in value]
    if isinstance(type_, wc.RecordType):
        return tuple(_from_public(field, getattr(value, name)) for name, field in type_.fields)
    if isinstance(type_, wc.ResultType):
        case, payload = _case_of([("ok", type_.ok), ("err", type_.err)], value)
        return payload if case == "ok" else Err(payload)
    if isinstance(type_, wc.VariantType):
        return _case_of(type_.cases, value)
    return value


def _case_of(cases: list[tuple[str, Any]], value: Any) -> tuple[str, Any]:
    """Which case a value is of: where their classes differ it is handed over without its name."""
    if _is_tagged(cases):
        case, value = value.tag, value.payload
    else:
        fits = (case for case, type_ in cases if isinstance(value, tuple(_classes(type_) - {object})))
        case = next(fits, None) or next(case for case, type_ in cases if object in _classes(type_))
    type_ = dict(cases)[case]
    return case, None if type_ is None else _from_public(type_, value)


def _is_tagged(cases: list[tuple[str, Any]]) -> bool:
    seen: set[type] = set()
    for _, type_ in cases:
        classes = _classes(type_)
        if classes & seen:
            return True
        seen |= classes
    return False


def _classes(type_: Any) -> set[type]:
    classes: set[type] = set()
    if type_ is None:
        return {object}
    type_.add_classes(classes)
    return classes


# The private way: a function for each type, made once. Python's side of a value is copied, so that all of
# C's is given back in one piece after each call.


def _fast(store: wasmtime.Store, func: wc.Func) -> Function:
    from wasmtime import _ffi as ffi

    kind = func.type(store)
    lowers = [_lower(type_) for _, type_ in kind.params]
    lift = None if kind.result is None else _lift(kind.result)
    count = len(lowers)
    new_arguments = ffi.wasmtime_component_val_t * count
    new_value = ffi.wasmtime_component_val_t
    reference, byref = ctypes.byref(func._func), ctypes.byref
    context, invoke, delete = (
        store._context,
        ffi.wasmtime_component_func_call,
        ffi.wasmtime_component_val_delete,
    )

    def call(*values: Any) -> Any:
        arguments, done = new_arguments(), 0
        try:
            for lower, value in zip(lowers, values, strict=True):
                lower(value, arguments[done])
                done += 1
            if lift is None:
                error = invoke(reference, context(), arguments, done, None, 0)
                if error:
                    raise wasmtime.WasmtimeError._from_ptr(error)
                return None
            out = new_value()
            error = invoke(reference, context(), arguments, done, byref(out), 1)
            if error:
                raise wasmtime.WasmtimeError._from_ptr(error)
            try:
                return lift(out)
            finally:
                delete(byref(out))
        finally:
            for place in range(done):
                delete(byref(arguments[place]))

    return call


def _lower(type_: Any) -> Callable[[Any, Any], None]:
    """A function that writes a value into a C structure."""
    from wasmtime import _ffi as ffi

    for class_, kind, name in (
        (wc.Bool, "BOOL", "boolean"),
        (wc.U16, "U16", "u16"),
        (wc.U32, "U32", "u32"),
        (wc.U64, "U64", "u64"),
        (wc.F64, "F64", "f64"),
    ):
        if isinstance(type_, class_):
            return partial(_lower_plain, getattr(ffi, f"WASMTIME_COMPONENT_{kind}").value, name)
    str_to_capi = ffi.str_to_capi
    if isinstance(type_, wc.String):
        string = ffi.WASMTIME_COMPONENT_STRING.value

        def lower_string(value: Any, slot: Any) -> None:
            slot.of.string = str_to_capi(value)
            slot.kind = string

        return lower_string
    if isinstance(type_, wc.EnumType):
        enum = ffi.WASMTIME_COMPONENT_ENUM.value

        def lower_enum(value: Any, slot: Any) -> None:
            slot.of.enumeration = str_to_capi(value)
            slot.kind = enum

        return lower_enum
    if isinstance(type_, wc.BorrowType):
        resource, clone = ffi.WASMTIME_COMPONENT_RESOURCE.value, ffi.wasmtime_component_resource_any_clone

        def lower_borrow(value: Any, slot: Any) -> None:
            slot.of.resource = clone(value.ptr())
            slot.kind = resource

        return lower_borrow
    if isinstance(type_, wc.OptionType):
        return partial(_lower_option, ffi, ffi.WASMTIME_COMPONENT_OPTION.value, _lower(type_.payload))
    if isinstance(type_, wc.ListType):
        return partial(_lower_list, ffi, ffi.WASMTIME_COMPONENT_LIST.value, _lower_element(type_.element))
    if isinstance(type_, wc.TupleType):
        lowers = [_lower(element) for element in type_.elements]
        return partial(_lower_tuple, ffi, ffi.WASMTIME_COMPONENT_TUPLE.value, lowers)
    if isinstance(type_, wc.RecordType):
        fields = [(name, _lower(field)) for name, field in type_.fields]
        return partial(_lower_record, ffi, ffi.WASMTIME_COMPONENT_RECORD.value, fields)
    if isinstance(type_, wc.VariantType):
        cases = {name: None if case is None else _lower(case) for name, case in type_.cases}
        return partial(_lower_variant, ffi, ffi.WASMTIME_COMPONENT_VARIANT.value, cases)
    if isinstance(type_, wc.FlagsType):
        return partial(_lower_flags, ffi, ffi.WASMTIME_COMPONENT_FLAGS.value)
    raise TypeError(f"no plain value for {type_}")


def _lower_plain(kind: int, name: str, value: Any, slot: Any) -> None:
    setattr(slot.of, name, value)
    slot.kind = kind


def _lower_element(element: Any) -> Callable[[Any, Any], None]:
    if isinstance(element, wc.U8):
        from wasmtime import _ffi as ffi

        return partial(_lower_plain, ffi.WASMTIME_COMPONENT_U8.value, "u8")
    return _lower(element)


def _lower_option(ffi: Any, kind: int, lower: Any, value: Any, slot: Any) -> None:
    slot.of.option = None if value is None else _boxed(ffi, lower, value)
    slot.kind = kind


def _lower_list(ffi: Any, kind: int, lower: Any, value: Any, slot: Any) -> None:
    raw = ffi.wasmtime_component_vallist_t()
    ffi.wasmtime_component_vallist_new_uninit(raw, len(value))
    for place, item in enumerate(value):
        lower(item, raw.data[place])
    slot.of.list = raw
    slot.kind = kind


def _lower_tuple(ffi: Any, kind: int, lowers: Any, value: Any, slot: Any) -> None:
    raw = ffi.wasmtime_component_valtuple_t()
    ffi.wasmtime_component_valtuple_new_uninit(raw, len(lowers))
    for place, (lower, item) in enumerate(zip(lowers, value, strict=True)):
        lower(item, raw.data[place])
    slot.of.tuple = raw
    slot.kind = kind


def _lower_record(ffi: Any, kind: int, fields: Any, value: Any, slot: Any) -> None:
    raw = ffi.wasmtime_component_valrecord_t()
    ffi.wasmtime_component_valrecord_new_uninit(raw, len(fields))
    for place, ((name, lower), item) in enumerate(zip(fields, value, strict=True)):
        entry = raw.data[place]
        entry.name = ffi.str_to_capi(name)
        lower(item, entry.val)
    slot.of.record = raw
    slot.kind = kind


def _lower_variant(ffi: Any, kind: int, cases: Any, value: Any, slot: Any) -> None:
    case, payload = value
    lower = cases[case]
    slot.of.variant.discriminant = ffi.str_to_capi(case)
    slot.of.variant.val = None if lower is None else _boxed(ffi, lower, payload)
    slot.kind = kind


def _lower_flags(ffi: Any, kind: int, value: Any, slot: Any) -> None:
    raw = ffi.wasmtime_component_valflags_t()
    ffi.wasmtime_component_valflags_new_uninit(raw, len(value))
    for place, name in enumerate(value):
        raw.data[place] = ffi.str_to_capi(name)
    slot.of.flags = raw
    slot.kind = kind


def _boxed(ffi: Any, lower: Any, value: Any) -> Any:
    raw = ffi.wasmtime_component_val_t()
    lower(value, raw)
    return ffi.wasmtime_component_val_new(ctypes.byref(raw))


def _lift(type_: Any) -> Callable[[Any], Any]:
    """A function that reads a value out of a C structure, and leaves the structure as it is."""
    from wasmtime import _ffi as ffi

    for class_, name in (
        (wc.Bool, "boolean"),
        (wc.U32, "u32"),
        (wc.U64, "u64"),
        (wc.F64, "f64"),
    ):
        if isinstance(type_, class_):
            return partial(_lift_plain, name)
    if isinstance(type_, wc.String):
        return lambda slot: ffi.to_str(slot.of.string)
    if isinstance(type_, wc.EnumType):
        return lambda slot: ffi.to_str(slot.of.enumeration)
    if isinstance(type_, wc.OptionType):
        payload = _lift(type_.payload)
        return lambda slot: payload(slot.of.option.contents) if slot.of.option else None
    if isinstance(type_, wc.ListType):
        return partial(_lift_list, _lift(type_.element))
    if isinstance(type_, wc.RecordType):
        return partial(_lift_record, [_lift(field) for _, field in type_.fields])
    if isinstance(type_, wc.ResultType):
        ok = None if type_.ok is None else _lift(type_.ok)
        err = None if type_.err is None else _lift(type_.err)
        return partial(_lift_result, ok, err)
    if isinstance(type_, wc.VariantType):
        cases = {name: None if case is None else _lift(case) for name, case in type_.cases}
        return partial(_lift_variant, ffi.to_str, cases)
    raise TypeError(f"no plain value for {type_}")


def _lift_plain(name: str, slot: Any) -> Any:
    return getattr(slot.of, name)


def _lift_list(lift: Any, slot: Any) -> list[Any]:
    raw = slot.of.list
    data = raw.data
    return [lift(data[place]) for place in range(raw.size)]


def _lift_record(lifts: Any, slot: Any) -> tuple[Any, ...]:
    data = slot.of.record.data
    return tuple(lift(data[place].val) for place, lift in enumerate(lifts))


def _lift_result(ok: Any, err: Any, slot: Any) -> Any:
    raw = slot.of.result
    if raw.is_ok:
        return None if ok is None else ok(raw.val.contents)
    return Err(None if err is None else err(raw.val.contents))


def _lift_variant(to_str: Any, cases: Any, slot: Any) -> tuple[str, Any]:
    raw = slot.of.variant
    case = to_str(raw.discriminant)
    lift = cases[case]
    return case, None if lift is None else lift(raw.val.contents)
