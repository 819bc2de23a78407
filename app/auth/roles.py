"""What each role of a researcher may do, and what each address needs.

A new role is a line in `ROLES`. A new route is a line in `NEEDED`: one that stands nowhere is refused to everybody.
"""

from app.errors import Forbidden

OWN = "own"  # one's own account, and what is the same for all
SEE = "see"  # scores and pictures
SEE_PEOPLE = "see_people"  # single answers, who gave them, who changed what
COLLECT = "collect"  # HITs and answers, for annotators of a program
CHANGE = "change"  # campaigns and their settings, which hold codes and passphrases
MANAGE_PEOPLE = "manage_people"  # researchers, their roles and logins

OWNER = "owner"
VIEWER = "viewer"
ROLES = {
    VIEWER: {OWN, SEE},
    "manager": {OWN, SEE, SEE_PEOPLE, COLLECT, CHANGE},
    OWNER: {OWN, SEE, SEE_PEOPLE, COLLECT, CHANGE, MANAGE_PEOPLE},
}

FORBIDDEN = {
    SEE: "see this",
    SEE_PEOPLE: "see single answers and who gave them",
    COLLECT: "collect answers by a program",
    CHANGE: "see or change the settings of campaigns",
    MANAGE_PEOPLE: "manage researchers",
}

PAGES, CAMPAIGN, API, OF_API = "/admin", "/admin/campaigns/{slug}", "/api/v1", "/api/v1/campaigns/{slug}"
ACCOUNT, USER = PAGES + "/account", PAGES + "/account/users/{user_id}"

NEEDED: dict[str, tuple[str, ...]] = {
    OWN: (
        "POST /logout",
        f"GET {ACCOUNT}",
        f"POST {ACCOUNT}/password",
        f"POST {ACCOUNT}/logout-everywhere",
        f"POST {ACCOUNT}/tokens",
        f"POST {ACCOUNT}/tokens/{{token_id}}/revoke",
        f"GET {PAGES}/api",
        f"GET {PAGES}/importing-responses",
        f"GET {API}/templates",
    ),
    SEE: (
        f"GET {PAGES}",
        f"GET {PAGES}/campaigns",
        f"GET {CAMPAIGN}",
        f"GET {CAMPAIGN}/events",
        f"GET {CAMPAIGN}/rehearsed",
        f"GET {CAMPAIGN}/match-quality",
        f"GET {CAMPAIGN}/match-quality.csv",
        f"GET {CAMPAIGN}/figures/item.svg",
        f"GET {CAMPAIGN}/figures/scores.svg",
        f"GET {CAMPAIGN}/figures/{{name}}.svg",
        f"GET {CAMPAIGN}/analysis",
        f"GET {CAMPAIGN}/analysis/{{section}}",
        f"GET {CAMPAIGN}/analysis/figures/{{name}}.svg",
        f"GET {CAMPAIGN}/analysis/tables/{{name}}.csv",
        f"GET {OF_API}/posteriors",
        f"GET {OF_API}/verify",
        f"GET {OF_API}/analysis",
        f"GET {OF_API}/analysis/compare",
        f"GET {OF_API}/analysis/scores/{{method}}",
        f"GET {OF_API}/analysis/tables/{{name}}",
    ),
    SEE_PEOPLE: (
        f"GET {CAMPAIGN}/export",
        f"GET {CAMPAIGN}/export/{{file}}",
        f"GET {CAMPAIGN}/log",
        f"GET {CAMPAIGN}/log.{{ending}}",
        f"GET {CAMPAIGN}/alerts",
        f"GET {CAMPAIGN}/people",
        f"GET {CAMPAIGN}/people.csv",
        f"GET {OF_API}/export/{{what}}",
        f"GET {OF_API}/log",
        f"GET {OF_API}/alerts",
        f"GET {OF_API}/annotators",
        f"GET {OF_API}/annotators/{{annotator}}",
        f"GET {OF_API}/annotators/{{annotator}}/answers",
        f"GET {OF_API}/people",
        f"GET {CAMPAIGN}/annotators",
        f"GET {CAMPAIGN}/annotators/{{annotator}}",
        f"GET {CAMPAIGN}/checks",
        f"GET {OF_API}/checks",
        f"GET {OF_API}/findings",
    ),
    COLLECT: (
        f"POST {OF_API}/hits",
        f"POST {OF_API}/consents",
        f"POST {API}/hits/{{hit_id}}/response",
    ),
    CHANGE: (
        f"GET {PAGES}/campaigns/new",
        f"GET {PAGES}/campaigns/new/question",
        f"POST {PAGES}/campaigns/new",
        f"POST {PAGES}/campaigns/new/file",
        *(f"GET {CAMPAIGN}/{page}" for page in ("edit", "share", "items", "try", "try/hit", "campaign.{ending}")),
        f"GET {CAMPAIGN}/{{action}}/confirm",
        f"PUT {CAMPAIGN}/try/hit",
        *(f"POST {CAMPAIGN}/{act}" for act in ("launch", "pause", "resume", "finish", "reopen", "archive", "restore")),
        *(f"POST {CAMPAIGN}/{act}" for act in ("edit", "after-launch", "copy", "delete", "items", "items/preview")),
        *(f"POST {CAMPAIGN}/{act}" for act in ("responses", "try/hit", "rehearse", "remove-rehearsal", "people")),
        f"POST {CAMPAIGN}/alerts/{{alert}}/seen",
        f"POST {CAMPAIGN}/annotators/{{annotator}}/{{action}}",
        f"POST {CAMPAIGN}/annotators/{{annotator}}/answers/{{answer}}/{{action}}",
        f"GET {API}/campaigns",
        f"POST {API}/campaigns",
        f"POST {API}/campaigns/files",
        f"GET {OF_API}",
        f"PATCH {OF_API}",
        f"DELETE {OF_API}",
        f"GET {OF_API}/file",
        f"GET {OF_API}/items",
        *(f"POST {OF_API}/{act}" for act in ("copies", "transitions", "items", "responses", "people")),
        f"POST {OF_API}/alerts/{{alert}}/seen",
        f"POST {OF_API}/annotators/{{annotator}}/{{action}}",
        f"POST {OF_API}/answers/{{answer}}/{{action}}",
    ),
    MANAGE_PEOPLE: (
        f"GET {PAGES}/log",
        f"GET {PAGES}/log.{{ending}}",
        f"GET {API}/log",
        f"POST {ACCOUNT}/users",
        f"POST {USER}/role",
        f"GET {USER}/link",
        f"POST {USER}/link",
        f"GET {USER}/remove",
        f"POST {USER}/remove",
    ),
}
NEEDS = {address: need for need, addresses in NEEDED.items() for address in addresses}


def may(role: str, need: str) -> bool:
    """Whether someone of this role may do what has this need. Of a role that nobody knows, nothing."""
    return need in ROLES.get(role, ())


def require_need(role: str, address: str) -> None:
    """address: as `GET /admin`, with the names of what varies. Raises `Forbidden` (`role_forbids`)."""
    need = NEEDS.get(address, "")
    if not may(role, need):
        what = FORBIDDEN.get(need, "do this")
        raise Forbidden(
            f"Your role here is {role}, which may not {what}. Nothing was changed. An owner of this server can give "
            "you another role.",
            code="role_forbids",
        )
