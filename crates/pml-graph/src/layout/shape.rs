//! Shapes that the steps of a layered layout share.

/// A point.
pub type Point = (f64, f64);

/// Distances, in the unit of the boxes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spacing {
    /// Between neighbours of one layer.
    pub between: f64,
    /// Between two layers.
    pub layers: f64,
    /// Between a box and what is inside of it.
    pub padding: f64,
}

/// The layers of a level. Items are the boxes, then one bend for each layer that an edge passes.
pub(super) struct Layers {
    /// Width of each item.
    pub(super) widths: Vec<f64>,
    /// Items of each layer, from left to right.
    pub(super) layers: Vec<Vec<usize>>,
    /// Items of the layer above that an item is connected with.
    pub(super) above: Vec<Vec<usize>>,
    /// The same for the layer below.
    pub(super) below: Vec<Vec<usize>>,
    /// Number of boxes among the items.
    pub(super) boxes: usize,
}
