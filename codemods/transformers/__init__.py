"""The codemods: one file per idiom family."""

from __future__ import annotations

from codemods.transformers.base import Codemod
from codemods.transformers.checkpoints import Checkpoints
from codemods.transformers.comparisons import Comparisons
from codemods.transformers.configured_devices import ConfiguredDevices
from codemods.transformers.cuda_functions import CudaFunctions
from codemods.transformers.cuda_only import CudaOnly
from codemods.transformers.data_loading import DataLoading
from codemods.transformers.device_literals import DeviceLiterals
from codemods.transformers.distributed import Backends, DeviceIndices, Parallelism
from codemods.transformers.environment import Environment
from codemods.transformers.framework_devices import FrameworkDevices
from codemods.transformers.graph_mode import GraphMode
from codemods.transformers.guards import Guards
from codemods.transformers.integer_devices import IntegerDevices
from codemods.transformers.mixed_precision import MixedPrecision
from codemods.transformers.options import Options
from codemods.transformers.placement import Placement
from codemods.transformers.precision import Precision
from codemods.transformers.target_tests import TargetTests
from codemods.transformers.tensor_types import TensorTypes

CODEMODS: tuple[type[Codemod], ...] = (
    # those that mostly report come first: of those that replace, one has the node
    CudaOnly,
    FrameworkDevices,
    TargetTests,
    GraphMode,
    Parallelism,
    Precision,
    Environment,
    DataLoading,
    TensorTypes,
    Checkpoints,
    Backends,
    DeviceIndices,
    MixedPrecision,
    Comparisons,
    Guards,
    Options,
    DeviceLiterals,
    IntegerDevices,
    ConfiguredDevices,
    CudaFunctions,
    Placement,
)
"""All codemods in the order in which they are asked."""
