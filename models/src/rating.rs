//! One rating, in the form in which it is stored, sorted and trained on.

use bytemuck::{Pod, Zeroable};

/// The `value` that `user` gave to `item`; both are positions in a [`crate::Names`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Rating {
    /// Position of the user's id among the users' names.
    pub user: u32,
    /// Position of the item's id among the items' names.
    pub item: u32,
    /// How much the user liked the item.
    pub value: f32,
}
