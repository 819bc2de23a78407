"""Receipts of imports of answers, and their sentences for people."""

from pydantic import BaseModel, Field

from app.errors import pluralize


class ResponseImportReceipt(BaseModel):
    """Receipt of an import of answers."""

    responses: int = Field(0, description="Responses stored by this import.")
    items: int = Field(0, description="Items judged by these responses.")
    not_applicable: int = Field(0, description="Scores left out because their item was marked N/A.")
    remarks: int = Field(0, description="Comments and flags that an export has, kept with these answers.")
    without_score: int = Field(0, description="Tasks in which every item was marked N/A: kept, without a response.")
    known: int = Field(0, description="Tasks skipped because they were imported before.")
    erased: int = Field(0, description="Tasks skipped because their annotator was erased.")
    without_worker: int = Field(0, description="Tasks without a WorkerId: they count as one annotator's.")
    over_wanted: int = Field(0, description="Number of these items that now have more judgments than wanted.")
    finished: bool = Field(
        default=False, description="Whether the campaign was finished because every item has its judgments."
    )
    rejected: int = Field(
        0,
        description=(
            "Tasks left out because they were rejected, cancelled or ignored, or were control tasks of another tool."
        ),
    )
    missing: int = Field(0, description="Values left out because their cells are empty or say NA.")
    percent: int = Field(0, description="Values that were written in percent.")
    decimal_comma: bool = Field(default=False, description="Whether numbers were read with decimal commas.")
    date_order: str = Field("", description="How ambiguous dates were read: day_first or month_first.")
    time_zone: str = Field("", description="Time zone of times without one; empty if all times have one.")
    columns: str = Field(
        "", description="What was read from which column, if the file does not have Easel's own columns."
    )
    passed_over: str = Field("", description="The columns that were not read in that case.")
    by_text: int = Field(0, description="Items that were found by their text instead of their id.")
    rows: int = Field(0, description="Rows of the file.")
    lines: int = Field(0, description="Lines of the file, blank ones included.")
    file: str = Field("", description="How the table was read, in sentences.")


def response_receipt_sentences(receipt: ResponseImportReceipt) -> list[str]:
    have = "has" if receipt.over_wanted == 1 else "have"
    condition_by_sentence = {
        f"Imported {pluralize(receipt.responses, 'response')} on {pluralize(receipt.items, 'item')}.": True,
        f"Tasks skipped because they were imported before: {receipt.known:,}.": receipt.known,
        f"Tasks skipped because their annotator was erased: {receipt.erased:,}.": receipt.erased,
        f"Scores left out because their item was marked N/A: {receipt.not_applicable:,}. The export of responses "
        "has these marks.": receipt.not_applicable,
        f"Comments and flags kept: {receipt.remarks:,}.": receipt.remarks,
        f"Tasks in which every item was marked N/A, kept without a response: {receipt.without_score:,}.": (
            receipt.without_score
        ),
        f"Rows without a WorkerId: {receipt.without_worker:,}. They count as the answers of one annotator.": (
            receipt.without_worker
        ),
        f"{pluralize(receipt.over_wanted, 'item')} now {have} more judgments than you wanted; all of them count.": (
            receipt.over_wanted
        ),
        "Every item has the judgments you wanted, so the campaign is finished.": receipt.finished,
        f"Tasks left out because they were rejected, cancelled or ignored: {receipt.rejected:,}.": receipt.rejected,
        f"Values left out because their cells are empty or say NA: {receipt.missing:,}.": receipt.missing,
        f"Values read as percent: {receipt.percent:,}.": receipt.percent,
        "Numbers were read with decimal commas.": receipt.decimal_comma,
        f"Dates were read with the {receipt.date_order.removesuffix('_first')} first.": receipt.date_order,
        f"Times without a time zone were read as {receipt.time_zone}.": receipt.time_zone,
        f"Columns read: {receipt.columns}.": receipt.columns,
        f"Columns skipped: {receipt.passed_over}.": receipt.passed_over,
        f"Items found by their text: {receipt.by_text:,}.": receipt.by_text,
        f"The file has {pluralize(receipt.rows, 'row')} on {pluralize(receipt.lines, 'line')}.": receipt.rows,
        receipt.file: receipt.file,
    }
    return [sentence for sentence, true in condition_by_sentence.items() if true]
