//! Tables on a terminal.

use comfy_table::{
    Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, TableStyle,
};

use super::number::plain;

/// One line under the header and nothing else: what is read is the content.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A table that is being filled.
pub(super) struct Table {
    table: comfy_table::Table,
    /// Whether numbers stand at the right of their columns.
    align_numbers: bool,
}

impl Table {
    /// A table with column heads; it is as wide as it needs to be, at most `width` columns of the
    /// terminal where that is known.
    pub fn new(heads: impl IntoIterator<Item = String>, width: Option<u16>) -> Self {
        let mut table = comfy_table::Table::new();
        table
            .force_no_tty()
            .load_style(STYLE)
            .set_header(heads.into_iter().map(|head| plain(&head)));
        if let Some(width) = width {
            table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width);
        }
        Self {
            table,
            align_numbers: true,
        }
    }

    /// The same with all texts at the left, for columns where numbers are only some of the texts.
    pub fn left_aligned(mut self) -> Self {
        self.align_numbers = false;
        self
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.table.add_row(cells.into_iter().map(|cell| {
            let right = self.align_numbers && cell.parse::<f64>().is_ok();
            let alignment = if right {
                CellAlignment::Right
            } else {
                CellAlignment::Left
            };
            Cell::new(plain(&cell)).set_alignment(alignment)
        }));
    }

    /// Never breaks the text of a column.
    pub fn keep_whole(&mut self, column: usize) {
        if let Some(column) = self.table.column_mut(column) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }

    /// The table with a last line end.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in self.table.lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}
