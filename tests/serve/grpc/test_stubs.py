"""The stubs that are checked in are those of the `.proto` files beside them."""

import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

from retinue.serve.grpc.v1 import agents_pb2, workers_pb2
from tests.structure.sources import SRC


@pytest.mark.parametrize("stub", [agents_pb2, workers_pb2], ids=["agents", "workers"])
def test_a_stub_is_that_of_its_file(stub: object, tmp_path: Path) -> None:
    checked_in = descriptor_pb2.FileDescriptorProto()
    stub.DESCRIPTOR.CopyToProto(checked_in)  # pyright: ignore[reportAttributeAccessIssue]
    found = tmp_path / "found"
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", f"-I{SRC}", f"--descriptor_set_out={found}",
         str(SRC / checked_in.name)],
        check=True,
    )  # fmt: skip
    files = descriptor_pb2.FileDescriptorSet.FromString(found.read_bytes())
    for file in (files.file[0], checked_in):
        _drop_json_names(file)
    assert files.file[0] == checked_in, "run `make stubs`"


def _drop_json_names(file: descriptor_pb2.FileDescriptorProto) -> None:
    """They follow from the names, and one of both ways of telling leaves them out."""
    for message in file.message_type:
        for field in message.field:
            field.ClearField("json_name")
