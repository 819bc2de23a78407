"""Objects of the application that the pages and the API of payments share."""

from typing import Annotated

from fastapi import Depends

from app.http.dependencies import Database, dependency_on_app_state
from app.payments.connections import ServiceConnector, refuse_payments_on_cluster

Connector = Annotated[ServiceConnector, dependency_on_app_state("payment_connector")]


def refuse_request_on_cluster(database: Database) -> None:
    refuse_payments_on_cluster(database)


REFUSE_ON_CLUSTER = Depends(refuse_request_on_cluster)
