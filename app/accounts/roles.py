"""Roles of researchers: what each may do, what each route needs, and which scope of a token that takes.

To add a role, add an entry in `NEEDS_BY_SERVER_ROLE` or `NEEDS_BY_CAMPAIGN_ROLE`. To add a route, add it in
`ROUTES_BY_NEED`: an unlisted route is refused to everyone. Every need belongs to one scope.
"""

from app.errors import Forbidden, join_names

OWN_ACCOUNT = "own"  # the own account, pages that are the same for all, and lists of visible campaigns
CHANGE_CHOSEN = "change_chosen"  # act on several campaigns at once; what each needs is checked one by one
SEE_CAMPAIGN = "see"  # scores and figures
SEE_PEOPLE = "see_people"  # single answers, their annotators, and the audit log of a campaign
SEE_SETTINGS = "see_settings"  # settings and items, with codes and passphrases
COLLECT_ANSWERS = "collect"  # get HITs and send answers, for annotators of a program
CHANGE_CAMPAIGN = "change"  # change a campaign, its items, and which annotators count
COPY_CAMPAIGN = "copy"  # needs the right to create campaigns too
SHARE_CAMPAIGN = "share"  # choose who else may reach a campaign
CREATE_CAMPAIGN = "create"
SEE_SERVER = "see_server"  # the audit log of the whole server
MANAGE_PEOPLE = "manage_people"  # researchers, their roles and logins

GUEST, MEMBER, VIEWER, MANAGER, OWNER = "guest", "member", "viewer", "manager", "owner"

# Needs that a role for the whole server grants, the weakest role first. A role that is also in
# `NEEDS_BY_CAMPAIGN_ROLE` holds in every campaign.
NEEDS_BY_SERVER_ROLE = {
    GUEST: {OWN_ACCOUNT, CHANGE_CHOSEN},
    MEMBER: {OWN_ACCOUNT, CHANGE_CHOSEN, CREATE_CAMPAIGN},
    VIEWER: {OWN_ACCOUNT, CHANGE_CHOSEN},
    MANAGER: {OWN_ACCOUNT, CHANGE_CHOSEN, CREATE_CAMPAIGN},
    OWNER: {OWN_ACCOUNT, CHANGE_CHOSEN, CREATE_CAMPAIGN, SEE_SERVER, MANAGE_PEOPLE},
}
ROLES = tuple(NEEDS_BY_SERVER_ROLE)

# Needs that a role grants in one campaign, the weakest role first.
NEEDS_BY_CAMPAIGN_ROLE = {
    VIEWER: {SEE_CAMPAIGN},
    MANAGER: {SEE_CAMPAIGN, SEE_PEOPLE, SEE_SETTINGS, COLLECT_ANSWERS, CHANGE_CAMPAIGN, COPY_CAMPAIGN},
    OWNER: {SEE_CAMPAIGN, SEE_PEOPLE, SEE_SETTINGS, COLLECT_ANSWERS, CHANGE_CAMPAIGN, COPY_CAMPAIGN, SHARE_CAMPAIGN},
}

# Needs that a token's scope covers, as far as the role of its researcher allows them.
NEEDS_BY_SCOPE = {
    "read": {OWN_ACCOUNT, SEE_CAMPAIGN, SEE_PEOPLE, SEE_SETTINGS, SEE_SERVER},
    "collect": {COLLECT_ANSWERS},
    "manage": {CHANGE_CHOSEN, CHANGE_CAMPAIGN, COPY_CAMPAIGN, SHARE_CAMPAIGN, CREATE_CAMPAIGN, MANAGE_PEOPLE},
}
SCOPE_BY_NEED = {need: scope for scope, needs in NEEDS_BY_SCOPE.items() for need in needs}
SERVER_NEEDS = {COPY_CAMPAIGN, CREATE_CAMPAIGN, SEE_SERVER, MANAGE_PEOPLE}  # not granted to a token for one campaign

NEED_PHRASES = {
    SEE_CAMPAIGN: "see this",
    SEE_PEOPLE: "see individual answers and who gave them",
    SEE_SETTINGS: "see the settings of campaigns",
    COLLECT_ANSWERS: "collect answers with a program",
    CHANGE_CHOSEN: "change campaigns",
    CHANGE_CAMPAIGN: "change campaigns",
    COPY_CAMPAIGN: "copy campaigns",
    SHARE_CAMPAIGN: "share a campaign",
    CREATE_CAMPAIGN: "create campaigns",
    SEE_SERVER: "see the audit log of this server",
    MANAGE_PEOPLE: "manage researchers",
}

ADMIN_PATH, CAMPAIGN_PAGES_PATH, API_PATH, CAMPAIGN_API_PATH = (
    "/admin",
    "/admin/campaigns/{slug}",
    "/api/v1",
    "/api/v1/campaigns/{slug}",
)
ACCOUNT_PATH, PEOPLE_PATH, USER_PATH = ADMIN_PATH + "/account", ADMIN_PATH + "/people", ADMIN_PATH + "/people/{user_id}"

ROUTES_BY_NEED: dict[str, tuple[str, ...]] = {
    OWN_ACCOUNT: (
        "POST /logout",
        f"GET {ACCOUNT_PATH}",
        f"POST {ACCOUNT_PATH}/password",
        f"POST {ACCOUNT_PATH}/logout-everywhere",
        f"POST {ACCOUNT_PATH}/openid",
        f"POST {ACCOUNT_PATH}/openid/disconnect",
        f"POST {ACCOUNT_PATH}/tokens",
        f"POST {ACCOUNT_PATH}/tokens/{{token_id}}/revoke",
        f"GET {ADMIN_PATH}/api",
        f"GET {ADMIN_PATH}/search",
        f"GET {ADMIN_PATH}/help",
        f"GET {ADMIN_PATH}/help/{{path:path}}",
        f"GET {API_PATH}/templates",
        f"GET {API_PATH}/search",
        f"GET {ADMIN_PATH}",
        f"GET {ADMIN_PATH}/campaigns",
        f"GET {API_PATH}/campaigns",
    ),
    CHANGE_CHOSEN: (f"POST {ADMIN_PATH}/campaigns/chosen", f"POST {API_PATH}/campaigns/chosen"),
    SEE_CAMPAIGN: (
        f"GET {CAMPAIGN_PAGES_PATH}",
        *(f"{method} {CAMPAIGN_PAGES_PATH}/preview" for method in ("GET", "POST", "PUT")),  # which stores nothing
        f"GET {CAMPAIGN_PAGES_PATH}/preview/phone",
        f"GET {CAMPAIGN_PAGES_PATH}/events",
        f"GET {CAMPAIGN_PAGES_PATH}/rehearsed",
        f"GET {CAMPAIGN_PAGES_PATH}/plan",
        f"GET {CAMPAIGN_PAGES_PATH}/match-quality",
        f"GET {CAMPAIGN_PAGES_PATH}/match-quality.csv",
        f"GET {CAMPAIGN_PAGES_PATH}/scores.csv",
        f"GET {CAMPAIGN_PAGES_PATH}/figures/item.svg",
        f"GET {CAMPAIGN_PAGES_PATH}/figures/scores.svg",
        f"GET {CAMPAIGN_PAGES_PATH}/figures/{{name}}.svg",
        f"GET {CAMPAIGN_PAGES_PATH}/analysis",
        f"GET {CAMPAIGN_PAGES_PATH}/analysis/{{section}}",
        f"GET {CAMPAIGN_PAGES_PATH}/analysis/figures/{{name}}.svg",
        f"GET {CAMPAIGN_PAGES_PATH}/analysis/tables/{{name}}.csv",
        f"GET {CAMPAIGN_API_PATH}/law-edition",
        f"GET {CAMPAIGN_API_PATH}/posteriors",
        f"GET {CAMPAIGN_API_PATH}/goal",
        f"GET {CAMPAIGN_API_PATH}/verify",
        f"GET {CAMPAIGN_API_PATH}/conditions",  # the overview shows them, too
        f"GET {CAMPAIGN_API_PATH}/analysis",
        f"GET {CAMPAIGN_API_PATH}/analysis/compare",
        f"GET {CAMPAIGN_API_PATH}/analysis/findings",
        f"GET {CAMPAIGN_API_PATH}/analysis/scores/{{method}}",
        f"GET {CAMPAIGN_API_PATH}/analysis/tables/{{name}}",
    ),
    SEE_PEOPLE: (
        f"GET {CAMPAIGN_PAGES_PATH}/export",
        f"GET {CAMPAIGN_PAGES_PATH}/export/everything.zip",
        f"GET {CAMPAIGN_PAGES_PATH}/export/methods",
        f"GET {CAMPAIGN_PAGES_PATH}/export/{{file}}",
        f"GET {CAMPAIGN_PAGES_PATH}/log",
        f"GET {CAMPAIGN_PAGES_PATH}/log.{{ending}}",
        f"GET {CAMPAIGN_PAGES_PATH}/alerts",
        f"GET {CAMPAIGN_PAGES_PATH}/people",
        f"GET {CAMPAIGN_PAGES_PATH}/people.csv",
        f"GET {CAMPAIGN_PAGES_PATH}/participants",
        f"GET {CAMPAIGN_PAGES_PATH}/approvals/{{platform}}.csv",
        f"GET {CAMPAIGN_API_PATH}/export/everything",
        f"GET {CAMPAIGN_API_PATH}/export/{{what}}",
        f"GET {CAMPAIGN_API_PATH}/log",
        f"GET {CAMPAIGN_API_PATH}/alerts",
        f"GET {CAMPAIGN_API_PATH}/annotators",
        f"GET {CAMPAIGN_API_PATH}/annotators/{{annotator}}",
        f"GET {CAMPAIGN_API_PATH}/annotators/{{annotator}}/answers",
        f"GET {CAMPAIGN_API_PATH}/people",
        f"GET {CAMPAIGN_API_PATH}/participants/{{list_name}}",
        f"GET {CAMPAIGN_PAGES_PATH}/annotators",
        f"GET {CAMPAIGN_PAGES_PATH}/annotators/{{annotator}}",
        f"GET {CAMPAIGN_PAGES_PATH}/checks",
        f"GET {CAMPAIGN_PAGES_PATH}/remarks",
        f"GET {CAMPAIGN_PAGES_PATH}/adjudicate",
        f"GET {CAMPAIGN_API_PATH}/adjudications",
        f"GET {CAMPAIGN_API_PATH}/remarks",
        f"GET {CAMPAIGN_API_PATH}/checks",
        f"GET {CAMPAIGN_API_PATH}/findings",
        f"GET {CAMPAIGN_API_PATH}/quality-matrix",
        *(f"{method} {CAMPAIGN_PAGES_PATH}/privacy" for method in ("GET", "POST")),
        f"GET {CAMPAIGN_PAGES_PATH}/privacy/{{person}}/export",
        f"GET {CAMPAIGN_PAGES_PATH}/privacy/receipts/{{receipt}}",
        f"POST {CAMPAIGN_API_PATH}/persons/search",
        f"GET {CAMPAIGN_API_PATH}/persons/{{person}}/export",
        f"GET {CAMPAIGN_API_PATH}/erasures",
        f"GET {CAMPAIGN_API_PATH}/erasures/{{receipt}}",
    ),
    COLLECT_ANSWERS: (
        f"POST {CAMPAIGN_API_PATH}/hits",
        f"POST {CAMPAIGN_API_PATH}/consents",
        f"POST {API_PATH}/hits/{{hit_id}}/response",
    ),
    SEE_SETTINGS: (
        *(
            f"GET {CAMPAIGN_PAGES_PATH}/{page}"
            for page in ("edit", "settings", "settings/{step}", "share", "items", "try", "try/hit", "campaign.{ending}")
        ),
        f"GET {CAMPAIGN_PAGES_PATH}/settings/{{step}}/totals",
        f"GET {CAMPAIGN_API_PATH}",
        f"GET {CAMPAIGN_API_PATH}/file",
        f"GET {CAMPAIGN_API_PATH}/items",
        f"GET {CAMPAIGN_API_PATH}/consent-text",
        f"GET {CAMPAIGN_API_PATH}/participants",
    ),
    CHANGE_CAMPAIGN: (
        f"GET {CAMPAIGN_PAGES_PATH}/{{action}}/confirm",
        f"PUT {CAMPAIGN_PAGES_PATH}/try/hit",
        *(
            f"POST {CAMPAIGN_PAGES_PATH}/{act}"
            for act in ("launch", "pause", "resume", "finish", "reopen", "archive", "restore", "revert")
        ),
        *(
            f"POST {CAMPAIGN_PAGES_PATH}/{act}"
            for act in (
                "settings/{step}",
                "tags",
                "judgments-per-item",
                "check-remedy",
                "close-open-link",
                "write-consent",
                "tasks-for-all-items",
                "better-rule",
                "delete",
                "items",
                "items/preview",
                "responses/preview",
            )
        ),
        *(
            f"POST {CAMPAIGN_PAGES_PATH}/items/{act}"
            for act in ("checks", "chosen", "gold", "known-answers", "one", "show-checks", "text", "unmark")
        ),
        f"GET {CAMPAIGN_PAGES_PATH}/items/text",
        *(
            f"POST {CAMPAIGN_PAGES_PATH}/{act}"
            for act in (
                "responses",
                "try/hit",
                "try/consent",
                "try/consent-text",
                "rehearse",
                "remove-rehearsal",
                "people",
                "participants",
            )
        ),
        f"POST {CAMPAIGN_PAGES_PATH}/alerts/{{alert}}/seen",
        f"POST {CAMPAIGN_PAGES_PATH}/annotators/{{annotator}}/{{action}}",
        *(f"POST {CAMPAIGN_PAGES_PATH}/checks/{what}" for what in ("decisions", "rules")),
        f"POST {CAMPAIGN_PAGES_PATH}/adjudicate",
        f"POST {CAMPAIGN_API_PATH}/adjudications",
        f"POST {CAMPAIGN_PAGES_PATH}/annotators/{{annotator}}/answers/{{answer}}/{{action}}",
        *(f"POST {path}/law-edition/newest" for path in (CAMPAIGN_PAGES_PATH, CAMPAIGN_API_PATH)),
        f"PATCH {CAMPAIGN_API_PATH}",
        f"DELETE {CAMPAIGN_API_PATH}",
        *(f"POST {CAMPAIGN_API_PATH}/{act}" for act in ("transitions", "items", "responses", "people")),
        f"POST {CAMPAIGN_API_PATH}/responses/preview",
        *(f"POST {CAMPAIGN_API_PATH}/items/{act}" for act in ("changes", "checks", "known-answers")),
        f"PUT {CAMPAIGN_API_PATH}/items/text",
        f"POST {CAMPAIGN_API_PATH}/participants/{{list_name}}",
        f"POST {CAMPAIGN_API_PATH}/alerts/{{alert}}/seen",
        f"POST {CAMPAIGN_API_PATH}/annotators/decisions",
        f"POST {CAMPAIGN_API_PATH}/annotators/{{annotator}}/{{action}}",
        f"POST {CAMPAIGN_API_PATH}/answers/{{answer}}/{{action}}",
        *(f"GET {CAMPAIGN_PAGES_PATH}/{page}" for page in ("payments", "payments.csv", "submissions", "study")),
        *(f"GET {CAMPAIGN_PAGES_PATH}/{page}" for page in ("calls", "calls.csv")),
        *(f"GET {CAMPAIGN_API_PATH}/calls{end}" for end in ("", "/earlier")),
        *(
            f"POST {path}/calls/{act}"
            for path in (CAMPAIGN_PAGES_PATH, CAMPAIGN_API_PATH)
            for act in ("repeat", "earlier", "{call}/decision")
        ),
        f"POST {CAMPAIGN_PAGES_PATH}/study",
        *(f"POST {path}/study/{act}" for path in (CAMPAIGN_PAGES_PATH, CAMPAIGN_API_PATH) for act in ("draft", "test")),
        f"GET {CAMPAIGN_API_PATH}/study",
        f"POST {CAMPAIGN_API_PATH}/study",
        f"POST {CAMPAIGN_PAGES_PATH}/submissions",
        *(f"POST {CAMPAIGN_PAGES_PATH}/submissions/{act}" for act in ("settings", "notices")),
        f"GET {CAMPAIGN_API_PATH}/submissions",
        f"POST {CAMPAIGN_API_PATH}/submissions",
        *(f"POST {CAMPAIGN_API_PATH}/submissions/{act}" for act in ("settings", "notices")),
        *(f"{method} {CAMPAIGN_API_PATH}/submissions/notices" for method in ("GET", "DELETE")),
        *(
            f"POST {CAMPAIGN_PAGES_PATH}/payments/{act}"
            for act in (
                "connection",
                "disconnect",
                "bonuses",
                "everyone",
                "send",
                "retry",
                "by-hand",
                "{payment}/decision",
            )
        ),
        f"GET {CAMPAIGN_API_PATH}/payments",
        f"POST {CAMPAIGN_API_PATH}/payments",
        *(f"POST {CAMPAIGN_API_PATH}/payments/{act}" for act in ("connection", "send", "retry", "{payment}/decision")),
        f"POST {CAMPAIGN_PAGES_PATH}/privacy/{{person}}/erase",
        f"POST {CAMPAIGN_API_PATH}/persons/{{person}}/erasure",
    ),
    COPY_CAMPAIGN: (f"POST {CAMPAIGN_PAGES_PATH}/copy", f"POST {CAMPAIGN_API_PATH}/copies"),
    SHARE_CAMPAIGN: (
        f"GET {CAMPAIGN_PAGES_PATH}/members",
        f"POST {CAMPAIGN_PAGES_PATH}/members",
        f"POST {CAMPAIGN_PAGES_PATH}/members/{{user_id}}/role",
        f"POST {CAMPAIGN_PAGES_PATH}/members/{{user_id}}/remove",
        *(f"POST {CAMPAIGN_PAGES_PATH}/{what}" for what in ("invitations", "links")),
        f"POST {CAMPAIGN_PAGES_PATH}/invitations/{{invitation}}/withdraw",
        f"POST {CAMPAIGN_PAGES_PATH}/links/{{link}}/withdraw",
    ),
    CREATE_CAMPAIGN: (
        f"GET {ADMIN_PATH}/campaigns/new",
        f"GET {ADMIN_PATH}/campaigns/new/question",
        f"POST {ADMIN_PATH}/campaigns/new",
        f"POST {ADMIN_PATH}/campaigns/new/file",
        f"POST {API_PATH}/campaigns",
        f"POST {API_PATH}/campaigns/files",
    ),
    SEE_SERVER: (f"GET {ADMIN_PATH}/log", f"GET {ADMIN_PATH}/log.{{ending}}", f"GET {API_PATH}/log"),
    MANAGE_PEOPLE: (
        f"GET {PEOPLE_PATH}",
        f"POST {PEOPLE_PATH}",
        f"POST {PEOPLE_PATH}/invitations",
        f"POST {PEOPLE_PATH}/invitations/{{invitation}}/withdraw",
        f"POST {USER_PATH}/role",
        f"GET {USER_PATH}/link",
        f"POST {USER_PATH}/link",
        f"GET {USER_PATH}/remove",
        f"POST {USER_PATH}/remove",
    ),
}
NEED_BY_ROUTE = {address: need for need, addresses in ROUTES_BY_NEED.items() for address in addresses}


def needs_granted_by_roles(role: str, member_role: str | None = None) -> set[str]:
    """Return the needs that a role for the server grants, with a role in the campaign if the researcher has one. An
    unknown role grants nothing.
    """
    needs = (
        NEEDS_BY_SERVER_ROLE.get(role, set())
        | NEEDS_BY_CAMPAIGN_ROLE.get(role, set())
        | NEEDS_BY_CAMPAIGN_ROLE.get(member_role or "", set())
    )
    return needs if CREATE_CAMPAIGN in needs else needs - {COPY_CAMPAIGN}


def campaign_roles_allowing(need: str) -> list[str]:
    return [role for role, needs in NEEDS_BY_CAMPAIGN_ROLE.items() if need in needs]


def stronger_role(first_role: str, second_role: str) -> str:
    """Return the role that grants more; both are for the server, or both for a campaign."""
    return max(first_role, second_role, key=ROLES.index)


class RoleForbids(Forbidden):
    """The researcher's role does not allow what the request needs. The last sentence says who can help."""


ANOTHER_ROLE_HINT = "An owner can give you another role."


def role_forbids_error(role: str, need: str) -> RoleForbids:
    return RoleForbids(
        f"Your role here is {role}, which does not let you {NEED_PHRASES.get(need, 'do this')}. Nothing was "
        f"changed. {ANOTHER_ROLE_HINT}",
        code="role_forbids",
    )


def server_role_forbids_error(role: str, need: str) -> RoleForbids:
    """Return the refusal of what the role in the campaign would allow and the role for the server does not."""
    return RoleForbids(
        f"Your role on this server is {role}, which does not let you {NEED_PHRASES.get(need, 'do this')}. Nothing was "
        "changed. An owner of the server can give you another role.",
        code="role_forbids",
    )


def scope_forbids_error(scopes: list[str], need: str) -> Forbidden:
    scope = SCOPE_BY_NEED.get(need, "")
    return Forbidden(
        f"This needs a token with the scope {scope}, but yours has {join_names(scopes)}. Nothing was changed. You can "
        "create another token on your account page.",
        code="scope_forbids",
        scope=scope,
    )
