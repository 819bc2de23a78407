"""Objects of the application that the pages and the API of people's data share."""

from typing import Annotated

from fastapi import Path

from app.http.dependencies import dependency_on_app_state
from app.privacy.erasure_work import ErasureWork

Erasures = Annotated[ErasureWork, dependency_on_app_state("erasures")]
PersonPathName = Annotated[str, Path(max_length=40, description="A7, the pseudonym in exports, L3 or P7.")]
ReceiptNumber = Annotated[str, Path(max_length=40, description="Number of the receipt, such as E-7K2MQ4TD.")]
