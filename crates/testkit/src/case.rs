//! One-launch plans from samples of the registry, run on an executor and compared with the reference evaluation in f64.

use crate::host::{loaded, stored};
use ocelli_ir::executor::{Executor, Input, Target};
use ocelli_ir::op::{Gen, Sample, Storage};
use ocelli_ir::plan::{Launch, Operand, Place, Plan};
use ocelli_ir::tensor::{Data, Tensor};
use ocelli_ir::{DType, Init, Op, Slot, SlotId, SlotKind, StateSpec, TensorType, View};
use std::sync::Arc;

/// How the operands lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// Without gaps.
    Dense,
    /// With gaps and turned axes, wherever the target says that it reads or writes such a view.
    Views,
    /// As `Dense`, but in-place pairs share a state slot.
    InPlace,
}

/// A sample with numbers, ready to run.
pub struct Case {
    /// The op.
    pub op: Op,
    /// A plan of one launch.
    pub plan: Plan,
    /// Bytes of the program's inputs.
    pub bytes: Vec<Vec<u8>>,
    /// Contents of state slots before the run.
    pub slots: Vec<Vec<u8>>,
    /// The reference results.
    pub want: Vec<Tensor<f64>>,
    /// Largest magnitude of the float inputs.
    pub largest: f64,
    /// Number of operands that are views with gaps.
    pub gaps: usize,
}

/// A view of `ty`'s shape with the last axes turned, a gap behind each row, and an offset.
fn scattered(g: &mut Gen, ty: &TensorType) -> View {
    let n = ty.shape.len();
    let mut order: Vec<usize> = (0..n).collect();
    if n > 1 && g.one_in(2) {
        let turn = g.dim(1, n - 1);
        order.rotate_left(turn);
    }
    let mut strides = vec![0; n];
    let mut next = 1;
    for &axis in order.iter().rev() {
        strides[axis] = next;
        next *= ty.shape[axis] + g.dim(0, 2);
    }
    View { offset: g.dim(0, 3), shape: ty.shape.clone(), strides }
}

/// A view like `scattered`, but of adjacent elements in the last axis.
fn gapped(g: &mut Gen, ty: &TensorType) -> View {
    let mut strides = vec![1; ty.shape.len()];
    for i in (1..ty.shape.len()).rev() {
        strides[i - 1] = strides[i] * (ty.shape[i] + g.dim(0, 2));
    }
    View { offset: g.dim(0, 3), shape: ty.shape.clone(), strides }
}

/// A view that `accepts` takes: scattered if possible, then gapped, then dense.
fn view(g: &mut Gen, ty: &TensorType, accepts: impl Fn(&View) -> bool) -> View {
    let tries = [scattered(g, ty), gapped(g, ty)];
    tries.into_iter().find(|v| accepts(v)).unwrap_or_else(|| View::contiguous(ty.shape.clone()))
}

/// Spreads dense elements over the memory of a view; the gaps hold a byte pattern that is NaN as a float.
fn spread(dense: &[u8], view: &View, size: usize) -> Vec<u8> {
    let mut out = vec![0xff; view.end() * size];
    let mut from = dense.chunks(size);
    view.for_each(|i| out[i * size..][..size].copy_from_slice(from.next().unwrap_or(&[])));
    out
}

/// A sample some of whose float inputs are stored in `half`, as far as its op's rule takes them.
fn halved(sample: &Sample, g: &mut Gen, half: Option<DType>) -> Sample {
    let mut sample = sample.clone();
    let (Some(half), true) = (half, sample.op.reads_half()) else { return sample };
    let floats: Vec<usize> =
        (0..sample.inputs.len()).filter(|&i| sample.inputs[i].0.dtype == DType::F32).collect();
    // What is moved has one width, and so have the operands of a product.
    let (mut groups, rest): (Vec<Vec<usize>>, Vec<usize>) = match sample.op.storage(0) {
        Storage::Moves => (vec![floats], vec![]),
        _ => (vec![sample.op.operands().to_vec()], floats),
    };
    groups.extend(rest.into_iter().filter(|i| !sample.op.operands().contains(i)).map(|i| vec![i]));
    for group in groups.into_iter().filter(|_| g.one_in(2)) {
        let mut types: Vec<TensorType> = sample.inputs.iter().map(|(ty, _)| ty.clone()).collect();
        group.iter().for_each(|&i| types[i].dtype = half);
        // Statistics keep 32 bits.
        if sample.op.infer(&types.iter().collect::<Vec<_>>()).is_ok() {
            group.iter().for_each(|&i| sample.inputs[i].0.dtype = half);
        }
    }
    sample
}

fn operand(place: Place, view: View, dtype: DType) -> Operand {
    Operand { place, contents: 0, view, dtype }
}

impl Case {
    /// A sample with numbers from `g`, its operands where `lie` says, as far as the target takes such views.
    pub fn new(target: &dyn Target, sample: &Sample, g: &mut Gen, lie: Lie) -> Self {
        Self::stored(target, sample, g, lie, None)
    }

    /// As `new`, with floats stored in `half` wherever the op allows it: of each kind of operands all, half the time.
    ///
    /// # Panics
    /// If the op's rule refuses its own sample.
    pub fn stored(target: &dyn Target, sample: &Sample, g: &mut Gen, lie: Lie, half: Option<DType>) -> Self {
        let sample = &halved(sample, g, half);
        let inputs: Vec<Tensor<f64>> = sample.draw(g);
        let op = sample.op.clone();
        let want = match &op {
            Op::StateWrite(_) => inputs.clone(),
            op => op.eval(&inputs.iter().collect::<Vec<_>>()),
        };
        let largest = inputs.iter().map(magnitude).fold(0.0, f64::max);
        let (bytes, slots) = (vec![], vec![]);
        let mut case = Self { op: op.clone(), plan: empty(), bytes, slots, want, largest, gaps: 0 };
        let mut spec = StateSpec::default();
        if let Op::StateWrite(w) = &op {
            case.slot(&mut spec, w.ty.clone(), vec![0; w.ty.bytes()]);
        }
        let ins = sample.inputs.iter().zip(&inputs).enumerate();
        let ins: Vec<Operand> = ins
            .map(|(i, ((ty, _), t))| {
                let bytes = stored(t, ty.dtype);
                if lie == Lie::InPlace && op.in_place().iter().any(|p| p.1 == i) {
                    let slot = case.slot(&mut spec, ty.clone(), bytes);
                    return operand(Place::State(slot), View::contiguous(ty.shape.clone()), ty.dtype);
                }
                case.input((target, g), &op, i, (ty, &bytes), lie)
            })
            .collect();
        let outs = case.outputs((target, g), &ins, lie, half);
        case.plan.outputs = outs.iter().enumerate().map(|(i, o)| (format!("y{i}"), o.clone())).collect();
        case.plan.state = Arc::new(spec);
        let (scope, branch, after) = ("".into(), 0, vec![]);
        case.plan.launches = vec![Launch { op, scope, inputs: ins, outputs: outs, branch, after }];
        case
    }

    /// Types of the op's inputs.
    pub fn types(&self) -> Vec<TensorType> {
        self.plan.launches[0].inputs.iter().map(Operand::ty).collect()
    }

    fn slot(&mut self, spec: &mut StateSpec, ty: TensorType, bytes: Vec<u8>) -> SlotId {
        self.slots.push(bytes);
        let name = format!("s{}", self.slots.len());
        spec.declare(Slot { name, ty, kind: SlotKind::Parameter, init: Init::Zeros }).unwrap()
    }

    fn input(
        &mut self,
        (target, g): (&dyn Target, &mut Gen),
        op: &Op,
        i: usize,
        (ty, bytes): (&TensorType, &[u8]),
        lie: Lie,
    ) -> Operand {
        let v = match lie {
            Lie::Views => view(g, ty, |v| target.reads_view(op, i, v)),
            _ => View::contiguous(ty.shape.clone()),
        };
        self.gaps += usize::from(!v.is_contiguous());
        let memory = spread(bytes, &v, ty.dtype.size());
        let flat = TensorType::new(ty.dtype, [memory.len() / ty.dtype.size()]);
        self.plan.inputs.push((format!("x{i}"), flat));
        self.bytes.push(memory);
        operand(Place::Input(self.plan.inputs.len() - 1), v, ty.dtype)
    }

    fn outputs(
        &mut self,
        (target, g): (&dyn Target, &mut Gen),
        ins: &[Operand],
        lie: Lie,
        half: Option<DType>,
    ) -> Vec<Operand> {
        let types: Vec<TensorType> = ins.iter().map(Operand::ty).collect();
        if let Op::StateWrite(w) = &self.op {
            return vec![operand(Place::State(w.slot), View::contiguous(w.ty.shape.clone()), w.ty.dtype)];
        }
        let mut types = self.op.infer(&types.iter().collect::<Vec<_>>()).unwrap();
        let op = self.op.clone();
        for (i, ty) in types.iter_mut().enumerate() {
            if let Some(half) =
                half.filter(|_| matches!(op.storage(i), Storage::Half | Storage::Stream) && g.one_in(2))
            {
                ty.dtype = half;
            }
        }
        types
            .iter()
            .enumerate()
            .map(|(i, ty)| {
                if let Some((_, j)) = op.in_place().iter().find(|p| p.0 == i && lie == Lie::InPlace) {
                    return ins[*j].clone();
                }
                let v = match lie {
                    Lie::Views => view(g, ty, |v| target.writes_view(&op, i, v)),
                    _ => View::contiguous(ty.shape.clone()),
                };
                self.gaps += usize::from(!v.is_contiguous());
                let at = self.plan.arena_bytes;
                self.plan.arena_bytes = (at + v.end() * ty.dtype.size()).next_multiple_of(64).max(at + 64);
                operand(Place::Arena(at), v, ty.dtype)
            })
            .collect()
    }

    /// Runs on `executor` and returns the bytes of each output.
    ///
    /// # Panics
    /// If the executor fails.
    pub fn run(&self, executor: &dyn Executor) -> Vec<Vec<u8>> {
        let mut program = executor.load(self.plan.clone()).unwrap();
        let mut state = executor.new_state(&self.plan.state, 0).unwrap();
        for (i, bytes) in self.slots.iter().enumerate() {
            state.write(SlotId(i as u32), bytes).unwrap();
        }
        let inputs: Vec<Input<'_>> = self.bytes.iter().map(Input::from).collect();
        program.run(&mut *state, &inputs).unwrap();
        (0..self.plan.outputs.len()).map(|i| program.output(i).unwrap()).collect()
    }

    /// Runs and compares with the reference: each output within `bound` times its largest magnitude or, if that
    /// is more, `floor`.
    ///
    /// # Panics
    /// If one is not.
    pub fn check(&self, executor: &dyn Executor, bound: f64, floor: f64) {
        for (i, (got, want)) in self.run(executor).iter().zip(&self.want).enumerate() {
            let what = format!("{} output {i} of {:?}", self.op, self.plan.launches[0].inputs);
            let dtype = self.plan.launches[0].outputs[i].dtype;
            // Half a step of the stored type, as a share of the number.
            let step = match dtype {
                DType::Bf16 => 1.0 / 256.0,
                DType::F16 => 1.0 / 2048.0,
                _ => 0.0,
            };
            compare(&what, got, dtype, want, (bound + step) * magnitude(want).max(floor));
        }
    }
}

/// A plan that does nothing.
pub fn empty() -> Plan {
    let state = Arc::new(StateSpec::default());
    Plan { name: "test".into(), launches: vec![], inputs: vec![], outputs: vec![], arena_bytes: 0, state }
}

/// Largest magnitude of a float tensor, 0 for others.
pub fn magnitude(t: &Tensor<f64>) -> f64 {
    let Data::Real(v) = &t.data else { return 0.0 };
    v.iter().fold(0.0, |m, x| m.max(x.abs()))
}

/// Compares a result with the reference.
///
/// # Panics
/// If it is further than `bound` from it.
pub fn compare(what: &str, got: &[u8], dtype: DType, want: &Tensor<f64>, bound: f64) {
    let Data::Real(want) = &want.data else {
        assert_eq!(got, stored(want, dtype), "{what}");
        return;
    };
    let got = loaded(got, dtype);
    assert_eq!(got.len(), want.len(), "{what}: number of elements");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g - w).abs() <= bound, "{what}: element {i} is {g}, want {w} within {bound:e}");
    }
}

/// True for ops that never are launches.
pub fn is_memory(op: &Op) -> bool {
    matches!(op, Op::Input(_) | Op::StateRead(_))
}
