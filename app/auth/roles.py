"""What each role of a researcher may do, what each address needs, and which scope of a token that takes.

A new role is a line in `OF_SERVER` or `IN_CAMPAIGN`. A new route is a line in `NEEDED`: one that stands nowhere is
refused to everybody. Every need is of one scope.
"""

from app.errors import Forbidden, listed

OWN = "own"  # one's own account, what is the same for all, and lists of what one may see
SEE = "see"  # scores and pictures of a campaign
SEE_PEOPLE = "see_people"  # single answers, who gave them, who changed what
SEE_SETTINGS = "see_settings"  # settings and items, with codes and passphrases
COLLECT = "collect"  # HITs and answers, for annotators of a program
CHANGE = "change"  # a campaign, its items and who counts
COPY = "copy"  # a campaign; it takes the right to create one, too
SHARE = "share"  # who else may reach a campaign
CREATE = "create"  # campaigns of one's own
SEE_SERVER = "see_server"  # who changed what on the whole server
MANAGE_PEOPLE = "manage_people"  # researchers, their roles and logins

GUEST, MEMBER, VIEWER, MANAGER, OWNER = "guest", "member", "viewer", "manager", "owner"

# What a role for the whole server gives, the weakest first. One that stands in `IN_CAMPAIGN`, too, holds there in
# every campaign.
OF_SERVER = {
    GUEST: {OWN},
    MEMBER: {OWN, CREATE},
    VIEWER: {OWN},
    MANAGER: {OWN, CREATE},
    OWNER: {OWN, CREATE, SEE_SERVER, MANAGE_PEOPLE},
}
ROLES = tuple(OF_SERVER)

# What a role gives in one campaign, the weakest first.
IN_CAMPAIGN = {
    VIEWER: {SEE},
    MANAGER: {SEE, SEE_PEOPLE, SEE_SETTINGS, COLLECT, CHANGE, COPY},
    OWNER: {SEE, SEE_PEOPLE, SEE_SETTINGS, COLLECT, CHANGE, COPY, SHARE},
}

# What a token with a scope may be used for, as far as its owner's role allows it.
SCOPES = {
    "read": {OWN, SEE, SEE_PEOPLE, SEE_SETTINGS, SEE_SERVER},
    "collect": {COLLECT},
    "manage": {CHANGE, COPY, SHARE, CREATE, MANAGE_PEOPLE},
}
SCOPE_OF = {need: scope for scope, needs in SCOPES.items() for need in needs}
OF_NO_CAMPAIGN = {COPY, CREATE, SEE_SERVER, MANAGE_PEOPLE}  # what a token for one campaign has not

FORBIDDEN = {
    SEE: "see this",
    SEE_PEOPLE: "see single answers and who gave them",
    SEE_SETTINGS: "see the settings of campaigns",
    COLLECT: "collect answers by a program",
    CHANGE: "change campaigns",
    COPY: "copy campaigns",
    SHARE: "say who may reach a campaign",
    CREATE: "create campaigns",
    SEE_SERVER: "see who changed what on this server",
    MANAGE_PEOPLE: "manage researchers",
}

PAGES, CAMPAIGN, API, OF_API = "/admin", "/admin/campaigns/{slug}", "/api/v1", "/api/v1/campaigns/{slug}"
ACCOUNT, PEOPLE, USER = PAGES + "/account", PAGES + "/people", PAGES + "/people/{user_id}"

NEEDED: dict[str, tuple[str, ...]] = {
    OWN: (
        "POST /logout",
        f"GET {ACCOUNT}",
        f"POST {ACCOUNT}/password",
        f"POST {ACCOUNT}/logout-everywhere",
        f"POST {ACCOUNT}/openid",
        f"POST {ACCOUNT}/openid/disconnect",
        f"POST {ACCOUNT}/tokens",
        f"POST {ACCOUNT}/tokens/{{token_id}}/revoke",
        f"GET {PAGES}/api",
        f"GET {PAGES}/importing-responses",
        f"GET {API}/templates",
        f"GET {PAGES}",
        f"GET {PAGES}/campaigns",
        f"GET {API}/campaigns",
    ),
    SEE: (
        f"GET {CAMPAIGN}",
        f"GET {CAMPAIGN}/events",
        f"GET {CAMPAIGN}/rehearsed",
        f"GET {CAMPAIGN}/plan",
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
        f"GET {OF_API}/goal",
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
        f"GET {CAMPAIGN}/remarks",
        f"GET {OF_API}/remarks",
        f"GET {OF_API}/checks",
        f"GET {OF_API}/findings",
    ),
    COLLECT: (
        f"POST {OF_API}/hits",
        f"POST {OF_API}/consents",
        f"POST {API}/hits/{{hit_id}}/response",
    ),
    SEE_SETTINGS: (
        *(f"GET {CAMPAIGN}/{page}" for page in ("edit", "share", "items", "try", "try/hit", "campaign.{ending}")),
        f"GET {OF_API}",
        f"GET {OF_API}/file",
        f"GET {OF_API}/items",
    ),
    CHANGE: (
        f"GET {CAMPAIGN}/{{action}}/confirm",
        f"PUT {CAMPAIGN}/try/hit",
        *(f"POST {CAMPAIGN}/{act}" for act in ("launch", "pause", "resume", "finish", "reopen", "archive", "restore")),
        *(
            f"POST {CAMPAIGN}/{act}"
            for act in ("edit", "after-launch", "judgments-per-item", "delete", "items", "items/preview")
        ),
        *(f"POST {CAMPAIGN}/items/{act}" for act in ("mark", "unmark")),
        *(f"POST {CAMPAIGN}/{act}" for act in ("responses", "try/hit", "rehearse", "remove-rehearsal", "people")),
        f"POST {CAMPAIGN}/alerts/{{alert}}/seen",
        f"POST {CAMPAIGN}/annotators/{{annotator}}/{{action}}",
        f"POST {CAMPAIGN}/annotators/{{annotator}}/answers/{{answer}}/{{action}}",
        f"PATCH {OF_API}",
        f"DELETE {OF_API}",
        *(f"POST {OF_API}/{act}" for act in ("transitions", "items", "responses", "people")),
        f"POST {OF_API}/alerts/{{alert}}/seen",
        f"POST {OF_API}/annotators/{{annotator}}/{{action}}",
        f"POST {OF_API}/answers/{{answer}}/{{action}}",
    ),
    COPY: (
        f"POST {CAMPAIGN}/copy",
        f"POST {OF_API}/copies",
    ),
    SHARE: (
        f"GET {CAMPAIGN}/members",
        f"POST {CAMPAIGN}/members",
        f"POST {CAMPAIGN}/members/{{user_id}}/role",
        f"POST {CAMPAIGN}/members/{{user_id}}/remove",
        *(f"POST {CAMPAIGN}/{what}" for what in ("invitations", "links")),
        f"POST {CAMPAIGN}/invitations/{{invitation}}/withdraw",
        f"POST {CAMPAIGN}/links/{{link}}/withdraw",
    ),
    CREATE: (
        f"GET {PAGES}/campaigns/new",
        f"GET {PAGES}/campaigns/new/question",
        f"POST {PAGES}/campaigns/new",
        f"POST {PAGES}/campaigns/new/file",
        f"POST {API}/campaigns",
        f"POST {API}/campaigns/files",
    ),
    SEE_SERVER: (
        f"GET {PAGES}/log",
        f"GET {PAGES}/log.{{ending}}",
        f"GET {API}/log",
    ),
    MANAGE_PEOPLE: (
        f"GET {PEOPLE}",
        f"POST {PEOPLE}",
        f"POST {PEOPLE}/invitations",
        f"POST {PEOPLE}/invitations/{{invitation}}/withdraw",
        f"POST {USER}/role",
        f"GET {USER}/link",
        f"POST {USER}/link",
        f"GET {USER}/remove",
        f"POST {USER}/remove",
    ),
}
NEEDS = {address: need for need, addresses in NEEDED.items() for address in addresses}


def grants(role: str, member: str | None = None) -> set[str]:
    """What somebody of this role for the server may do, who in the campaign that they ask for has another one, or none.

    Of a role that nobody knows, nothing.
    """
    found = OF_SERVER.get(role, set()) | IN_CAMPAIGN.get(role, set()) | IN_CAMPAIGN.get(member or "", set())
    return found if CREATE in found else found - {COPY}


def gives(need: str) -> list[str]:
    """The roles in a campaign that allow what has this need."""
    return [role for role, needs in IN_CAMPAIGN.items() if need in needs]


def stronger(one: str, other: str) -> str:
    """Of two roles for the server, or two in a campaign, the one that gives more."""
    return max(one, other, key=ROLES.index)


def role_forbids(role: str, need: str) -> Forbidden:
    return Forbidden(
        f"Your role here is {role}, which may not {FORBIDDEN.get(need, 'do this')}. Nothing was changed. An owner can "
        "give you another role.",
        code="role_forbids",
    )


def scope_forbids(scopes: list[str], need: str) -> Forbidden:
    scope = SCOPE_OF.get(need, "")
    return Forbidden(
        f"This takes a token with the scope {scope}, and yours has {listed(scopes)}. Nothing was changed. You make "
        "another token on your account page.",
        code="scope_forbids",
        scope=scope,
    )
