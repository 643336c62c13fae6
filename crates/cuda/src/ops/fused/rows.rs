//! Fused ops that look at whole rows or columns: norms and their gradients behind a product, sums of columns.

use super::{Core, Made};
use crate::elements::{Access, Place, Stage};
use crate::lower::{Arg, Tensor, c_float};
use ocelli_ir::ops::ReduceSum;
use ocelli_ir::{Node, Op, Value, View};

/// True for norms and their gradients.
pub fn is_norm(node: &Node) -> bool {
    matches!(node.op, Op::LayerNorm(_) | Op::RmsNorm(_)) || is_norm_gradient(node)
}

/// True for gradients of norms.
pub fn is_norm_gradient(node: &Node) -> bool {
    matches!(node.op, Op::LayerNormGrad(_) | Op::RmsNormGrad(_))
}

impl Made<'_> {
    /// A norm of what a product makes: sums over the row's lanes, twice, as `layer_norm` by itself does.
    pub(super) fn norm(&mut self, node: &Node, eps: f64) -> Option<()> {
        self.whole_rows()?;
        let shape = self.body.ty(node.outputs[0]).shape.clone();
        (shape.numel() == self.numel()).then_some(())?;
        let cols = self.columns();
        let mean = node.inputs.len() == 3;
        let names = node.inputs.iter().map(|&v| self.read(v, &shape)).collect::<Option<Vec<_>>>()?;
        let n = node.outputs[0].index();
        let x = self.array("float", &format!("n{n}"));
        self.one.body.push_str(&format!("        {x} = {};\n", names[0]));
        self.one.declared.push_str(&format!("    float mean{n} = 0.0f, rstd{n};\n"));
        let mut row = String::from("    {\n    float sum = 0.0f, squares = 0.0f;\n");
        let each = "#pragma unroll\n    for (u32 v = 0; v < WIDTH; v++)";
        if mean {
            row.push_str(&format!("{each} sum += n{n}[v];\n    mean{n} = row_sum<LANES>(sum) / {cols}u;\n"));
        }
        row.push_str(&format!("{each} squares += (n{n}[v] - mean{n}) * (n{n}[v] - mean{n});\n"));
        row.push_str(&format!(
            "    rstd{n} = 1.0f / sqrtf(row_sum<LANES>(squares) / {cols}u + {});\n    }}\n",
            c_float(eps)
        ));
        // Mean, if there is one, and reciprocal deviation are results as well.
        let statistics = if mean { &[("mean", 1), ("rstd", 2)][..] } else { &[("rstd", 1)] };
        for &(name, i) in statistics {
            self.names.insert(node.outputs[i], format!("{name}{n}"));
            self.rows.push(node.outputs[i]);
        }
        self.next_stage(row);
        let text = match mean {
            true => format!("        const float y0 = ({x} - mean{n}) * rstd{n} * x0 + x1;\n"),
            false => format!("        const float y0 = {x} * rstd{n} * x0;\n"),
        };
        let only = Node { outputs: vec![node.outputs[0]], ..node.clone() };
        self.declare(&only, &text, &names[1..])
    }

    /// The gradient of a norm whose dy a product makes; formulas as in row_norm/backward.cu.
    pub(super) fn norm_gradient(&mut self, node: &Node) -> Option<()> {
        self.whole_rows()?;
        let shape = self.body.ty(node.outputs[0]).shape.clone();
        (shape.numel() == self.numel()).then_some(())?;
        let cols = self.columns();
        let n = node.outputs[0].index();
        let (first, last) = (node.inputs[0], *node.inputs.last()?);
        let x = self.read(first, &shape)?;
        let gamma = self.read(node.inputs[1], &shape)?;
        let statistics = node.inputs[2..node.inputs.len() - 1]
            .iter()
            .map(|&v| self.read_row(v))
            .collect::<Option<Vec<_>>>()?;
        let dy = self.read(last, &shape)?;
        let (mean, rstd) = match &statistics[..] {
            [mean, rstd] => (mean.clone(), rstd.clone()),
            [rstd] => ("0.0f".into(), rstd.clone()),
            _ => return None,
        };
        let [h, t] = ["h", "d"].map(|name| self.array("float", &format!("{name}{n}")));
        let base = self.one.columns;
        self.one.columns += node.outputs.len() - 1;
        self.sums.extend(&node.outputs[1..]);
        let shift =
            if node.outputs.len() == 3 { format!(" columns[{}][v] += dy;", base + 1) } else { String::new() };
        self.one.body.push_str(&format!(
            "        {{\n        const float dy = {dy};\n        {h} = ({x} - {mean}) * {rstd};\n        {t} = dy * {gamma};\n        \
             columns[{base}][v] += dy * {h};{shift}\n        }}\n"
        ));
        self.one.declared.push_str(&format!("    float rstd{n}, mean_t{n} = 0.0f, mean_th{n} = 0.0f;\n"));
        let centre = if statistics.len() == 2 {
            format!("mean_t{n} = row_sum<LANES>(mean_t{n}) / {cols}u;")
        } else {
            format!("mean_t{n} = 0.0f;")
        };
        let row = format!(
            "#pragma unroll\n    for (u32 v = 0; v < WIDTH; v++) mean_t{n} += d{n}[v], mean_th{n} += d{n}[v] * h{n}[v];\n    \
             {centre}\n    mean_th{n} = row_sum<LANES>(mean_th{n}) / {cols}u;\n"
        );
        self.next_stage(row);
        let only = Node { outputs: vec![node.outputs[0]], ..node.clone() };
        let text = format!("        const float y0 = x0 * ({t} - mean_t{n} - {h} * mean_th{n});\n");
        self.declare(&only, &text, &[rstd])
    }

    /// The gradient of a norm by itself: dx goes on from here, its kernel makes the sums of the others.
    pub(super) fn norm_core(&mut self, node: &Node) -> Option<()> {
        let inputs = node.inputs.iter().map(|v| self.inputs.get(v).copied()).collect::<Option<Vec<_>>>()?;
        let dense = |&i: &usize| self.cx.ins[i].view.is_contiguous();
        let full = self.body.ty(node.outputs[0]).shape.numel() == self.numel();
        (full && inputs.iter().all(dense)).then_some(())?;
        self.core = Some(Core::Norm(inputs));
        self.sums.extend(&node.outputs[1..]);
        let sums = self.sums();
        let one = Node { outputs: vec![node.outputs[0]], ..node.clone() };
        self.declare(&one, "        const float y0 = x0;\n", &[sums])
    }

    /// The sum of all rows of what is made: the gradient of a bias.
    pub(super) fn column_sum(&mut self, op: &ReduceSum, node: &Node) -> Option<()> {
        let shape = self.body.ty(node.inputs[0]).shape.clone();
        let all_but_last = op.axes.len() + 1 == shape.len() && !op.axes.contains(&op.axes.len());
        let whole = shape.numel() == self.numel() && shape.last() == self.one.space.last();
        (self.core.is_some() && all_but_last && whole).then_some(())?;
        let x = self.read(node.inputs[0], &shape)?;
        self.one.body.push_str(&format!("        columns[{}][v] += {x};\n", self.one.columns));
        self.one.columns += 1;
        self.sums.push(node.outputs[0]);
        Some(())
    }

    /// Goes on behind statements that a row's lanes do together.
    fn next_stage(&mut self, row: String) {
        let each = std::mem::take(&mut self.one.body);
        self.one.stages.push(Stage { each, row });
    }

    /// Only behind a product whose rows lanes side by side hold.
    fn whole_rows(&self) -> Option<()> {
        let lanes = match &self.core {
            Some(Core::Product(product)) => product.whole_rows()?,
            Some(Core::Hidden(layer)) => layer.last.as_ref()?.n / 8,
            _ => return None,
        };
        (self.arrays && lanes * 8 == self.columns()).then_some(())
    }

    fn columns(&self) -> usize {
        self.one.space.last().copied().unwrap_or(1)
    }

    /// The variable of a value of which each row has one element.
    fn read_row(&mut self, v: Value) -> Option<String> {
        let input = *self.inputs.get(&v)?;
        let t = &self.cx.ins[input];
        let cols = self.columns();
        let view = View { offset: 0, ..t.view.clone() }.reshape(&[self.numel() / cols, 1].into())?;
        let view =
            view.broadcast(&[self.numel() / cols, cols].into())?.reshape(&self.one.space.clone().into())?;
        let place = Place::Strides(view.strides);
        self.one.reads.push(Access { arg: Arg::In(input, 0), dtype: t.dtype, align: t.align, place });
        Some(format!("e{}", self.one.reads.len() - 1))
    }

    /// Writes a value of which each row has one element, if it is one.
    pub(super) fn row_out(&mut self, v: Value, (arg, t): (Arg, &Tensor)) -> Option<bool> {
        if !self.rows.contains(&v) {
            return Some(false);
        }
        let name = self.names.get(&v)?;
        (t.dtype == ocelli_ir::DType::F32 && t.view.is_contiguous()).then_some(())?;
        let at = self.one.row_outs.len();
        let text = format!("    if (first == 0) o{at}[i / LANES] = {name};\n");
        self.one.stages.last_mut()?.row.push_str(&text);
        self.one.row_outs.push(arg);
        Some(true)
    }
}
