"""The keeper against Secrets in every state, with real certificates."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from headroom.adapters.certificates.certificate_issuer import new_ca, new_leaf
from headroom.adapters.certificates.certificate_reader import KeyPair
from headroom.adapters.certificates.server_tls import Identity
from headroom.certificates.values import CA_S, CA_SECRET, DAY_S, HOUR_S, Role
from headroom.errors import Conflict
from headroom.ops.certificate_keeper import CertificateKeeper
from support.fakes_certificates import SYSTEM, FakeSecrets, identity

BEGIN_S = 1_795_000_000.0


@dataclass
class World:
    secrets: FakeSecrets = field(default_factory=FakeSecrets.of_the_manifests)
    now_s: float = BEGIN_S
    leads: bool = True
    installed: list[Identity] = field(default_factory=list)
    known: dict[str, float] = field(default_factory=dict)

    def install(self, identity: Identity) -> None:
        self.installed.append(identity)

    def keeper(self, *, issues: bool = True) -> CertificateKeeper:
        return CertificateKeeper(
            self.secrets,
            self,
            lambda: self.now_s,
            namespace=SYSTEM,
            issues=issues,
            leads=lambda: self.leads,
            known=self.known.update,
        )

    def assert_whole(self) -> None:
        """Every holder has a valid certificate of the signing CA or one that all trust."""
        bundles = []
        for role in Role:
            data = self.secrets.data(role.secret)
            one = x509.load_pem_x509_certificate(data["tls.crt"])
            trusted = x509.load_pem_x509_certificates(data["ca.crt"])
            names = one.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            assert names.get_values_for_type(x509.DNSName) == [f"{role}.{SYSTEM}.svc"]
            assert one.not_valid_before_utc.timestamp() <= self.now_s
            assert one.not_valid_after_utc.timestamp() > self.now_s
            signers = [ca for ca in trusted if _signed(one, ca)]
            assert len(signers) == 1
            bundles.append(data["ca.crt"])
        assert len(set(bundles)) == 1


def _signed(one: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        one.verify_directly_issued_by(ca)
    except (InvalidSignature, ValueError):
        return False
    return True


async def test_keeper_with_empty_secrets_issues_all_and_then_writes_nothing() -> None:
    world = World()
    await world.keeper().renew()
    world.assert_whole()
    assert world.known == {role.secret: BEGIN_S + DAY_S for role in Role}
    assert world.secrets.writes == [CA_SECRET, *(role.secret for role in Role)]
    assert world.installed[0].key == world.secrets.data(Role.OPERATOR.secret)["tls.key"]
    await world.keeper().renew()
    assert len(world.secrets.writes) == 4
    assert "tls.key" not in world.secrets.objects[CA_SECRET].get("stringData", {})


async def test_keeper_after_restart_keeps_the_secrets() -> None:
    world = World()
    await world.keeper().renew()
    before = {name: dict(one) for name, one in world.secrets.objects.items()}
    world.now_s += HOUR_S
    await world.keeper().renew()
    assert world.secrets.objects == before


async def test_keeper_over_two_years_never_breaks_a_connection_that_is_an_hour_behind() -> None:
    """A holder whose files are an hour old trusts, and is trusted by, one whose files are new."""
    world = World()
    keeper = world.keeper()
    behind: dict[Role, dict[str, bytes]] = {}
    signers = set()
    for _ in range(2 * 365):
        world.now_s += DAY_S / 2 + HOUR_S
        await keeper.renew()
        world.assert_whole()
        now = {role: world.secrets.data(role.secret) for role in Role}
        for role, old in behind.items():
            new = now[Role.OPERATOR]
            for end, other in ((old, new), (new, old)):
                one = x509.load_pem_x509_certificate(end["tls.crt"])
                trusted = x509.load_pem_x509_certificates(other["ca.crt"])
                assert any(_signed(one, ca) for ca in trusted), role
        behind = now
        signers.add(world.secrets.data(CA_SECRET)["tls.crt"])
    assert len(signers) == 2  # one each 244 days: after two thirds of a year and a day


@pytest.mark.parametrize(
    ("secret", "broken"),
    [
        pytest.param(CA_SECRET, {"tls_key": None}, id="the CA without its key"),
        pytest.param(CA_SECRET, {"tls_crt": b"-----BEGIN"}, id="half a CA"),
        pytest.param(CA_SECRET, {"tls_crt": "%%"}, id="no base64"),
        pytest.param(CA_SECRET, {"tls_key": new_ca(BEGIN_S).key}, id="the key of another CA"),
        pytest.param(Role.GATEWAY.secret, {"tls_key": None}, id="a leaf without its key"),
        pytest.param(Role.GATEWAY.secret, {"tls_crt": b""}, id="a key without its leaf"),
        pytest.param(
            Role.ACTIVATOR.secret, {"tls_key": new_ca(BEGIN_S).key}, id="the key of another leaf"
        ),
        pytest.param(Role.OPERATOR.secret, {"ca_crt": b"nothing"}, id="trusts no CA"),
    ],
)
async def test_keeper_with_half_written_secret_makes_it_whole(
    secret: str, broken: dict[str, bytes | str | None]
) -> None:
    world = World()
    await world.keeper().renew()
    world.secrets.set(secret, **broken)
    await world.keeper().renew()
    world.assert_whole()


@pytest.mark.parametrize("writes", range(4))
async def test_keeper_that_ends_between_writes_is_continued_by_the_next(writes: int) -> None:
    world = World()
    world.secrets.breaks_after = writes
    with pytest.raises(Conflict):
        await world.keeper().renew()
    world.secrets.breaks_after = None
    await world.keeper().renew()
    world.assert_whole()


async def test_keeper_with_a_certificate_of_another_ca_issues_its_own() -> None:
    world = World()
    await world.keeper().renew()
    stranger = new_ca(BEGIN_S)
    pair = new_leaf(stranger, Role.GATEWAY.dns_name(SYSTEM), BEGIN_S)
    world.secrets.set(Role.GATEWAY.secret, tls_crt=pair.certificate, tls_key=pair.key)
    await world.keeper().renew()
    world.assert_whole()


@pytest.mark.parametrize("step_s", [-30 * 60.0, -3 * HOUR_S, -400 * DAY_S, 400 * DAY_S])
async def test_keeper_whose_clock_steps_and_steps_back_is_whole_each_time(step_s: float) -> None:
    world = World()
    await world.keeper().renew()
    for _ in range(2):
        world.now_s += step_s
        await world.keeper().renew()
        world.assert_whole()
        step_s = -step_s


async def test_keeper_that_does_not_lead_reads_only_its_own() -> None:
    world = World()
    await world.keeper().renew()
    world.leads = False
    world.now_s += 20 * HOUR_S
    follower = world.keeper()
    await follower.renew()
    assert len(world.secrets.writes) == 4
    assert world.installed[-1] == world.installed[0]
    assert follower.check().passed


async def test_keeper_without_secret_says_what_to_apply() -> None:
    world = World()
    del world.secrets.objects[CA_SECRET]
    with pytest.raises(ValueError, match=r"headroom-system/headroom-ca must exist: apply"):
        await world.keeper().renew()


async def test_keeper_reading_another_issuers_secret_installs_and_writes_nothing() -> None:
    world = World(FakeSecrets.of_the_manifests())
    keeper = world.keeper(issues=False)
    with pytest.raises(ValueError, match="its issuer, such as cert-manager, must write it"):
        await keeper.renew()
    for role, complaint in (
        (Role.GATEWAY, "must have the DNS name headroom-operator.headroom-system.svc"),
        (Role.OPERATOR, ""),
    ):
        one = identity(new_ca(BEGIN_S), role, BEGIN_S)
        world.secrets.set(
            Role.OPERATOR.secret, tls_crt=one.certificate, tls_key=one.key, ca_crt=one.trusted
        )
        if complaint:
            with pytest.raises(ValueError, match=complaint):
                await keeper.renew()
            assert not world.installed
    await keeper.renew()
    assert world.installed
    assert not world.secrets.writes
    world.now_s += 2 * DAY_S
    with pytest.raises(ValueError, match="is not valid now"):
        await keeper.renew()


def test_leaf_of_an_ending_ca_does_not_outlive_it() -> None:
    ca = new_ca(BEGIN_S)
    late_s = BEGIN_S + CA_S - HOUR_S
    pair: KeyPair = new_leaf(ca, "x.y.svc", late_s)
    until = x509.load_pem_x509_certificate(pair.certificate).not_valid_after_utc
    assert until.timestamp() == BEGIN_S + CA_S
