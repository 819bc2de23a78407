"""Objects of the application that the pages and the API of payments share."""

from typing import Annotated

from app.http.dependencies import dependency_on_app_state
from app.payments.connections import ServiceConnector

Connector = Annotated[ServiceConnector, dependency_on_app_state("payment_connector")]
