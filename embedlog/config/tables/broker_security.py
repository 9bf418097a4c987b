"""Broker settings of TLS, SASL and authorization."""

TABLE = """
authorizer.class.name string "" - read-only
    Java class that decides which user may do which operation. Accepted, not used.
config.providers list "" - cluster-wide
    Sources that settings may refer to. Accepted, not used.
connection.failed.authentication.delay.ms int 100 >=0 read-only
    Pause before a connection that failed to authenticate is closed. Accepted, not used.
connections.max.reauth.ms long 0 - read-only
    Longest life of an authentication; 0 means for ever. Accepted, not used.
delegation.token.expiry.check.interval.ms long 3600000 >=1 read-only
    How often expired delegation tokens are removed. Accepted, not used.
delegation.token.expiry.time.ms long 86400000 >=1 read-only
    How long a delegation token is good without being renewed. Accepted, not used.
delegation.token.max.lifetime.ms long 604800000 >=1 read-only
    Age beyond which a delegation token cannot be renewed. Accepted, not used.
delegation.token.secret.key password null - read-only
    Secret that signs delegation tokens. Accepted, not used.
principal.builder.class class \
org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder - per-broker
    Java class that derives the user's name from a connection. Accepted, not used.
sasl.client.callback.handler.class class null - read-only
    Java class that answers SASL for clients. Accepted, not used.
sasl.enabled.mechanisms list GSSAPI - per-broker
    SASL mechanisms that clients may use. Accepted, not used.
sasl.jaas.config password null - per-broker
    Java login configuration. Accepted, not used.
sasl.kerberos.kinit.cmd string /usr/bin/kinit - per-broker
    Path of kinit. Accepted, not used.
sasl.kerberos.min.time.before.relogin long 60000 - per-broker
    Shortest time between Kerberos logins. Accepted, not used.
sasl.kerberos.principal.to.local.rules list DEFAULT - per-broker
    How Kerberos names become short names. Accepted, not used.
sasl.kerberos.service.name string null - per-broker
    Kerberos name of the broker. Accepted, not used.
sasl.kerberos.ticket.renew.jitter double 0.05 - per-broker
    Randomness of ticket renewal. Accepted, not used.
sasl.kerberos.ticket.renew.window.factor double 0.8 - per-broker
    Fraction of a ticket's life after which it is renewed. Accepted, not used.
sasl.login.callback.handler.class class null - read-only
    Java class that answers SASL at login. Accepted, not used.
sasl.login.class class null - read-only
    Java class that logs in. Accepted, not used.
sasl.login.connect.timeout.ms int null - read-only
    Wait for a connection to the login provider. Accepted, not used.
sasl.login.read.timeout.ms int null - read-only
    Wait for an answer of the login provider. Accepted, not used.
sasl.login.refresh.buffer.seconds short 300 - per-broker
    Time before expiry in which a login is refreshed. Accepted, not used.
sasl.login.refresh.min.period.seconds short 60 - per-broker
    Shortest time between refreshes of a login. Accepted, not used.
sasl.login.refresh.window.factor double 0.8 - per-broker
    Fraction of a login's life after which it is refreshed. Accepted, not used.
sasl.login.refresh.window.jitter double 0.05 - per-broker
    Randomness of the time at which a login is refreshed. Accepted, not used.
sasl.login.retry.backoff.max.ms long 10000 - read-only
    Longest pause between login attempts. Accepted, not used.
sasl.login.retry.backoff.ms long 100 - read-only
    First pause between login attempts. Accepted, not used.
sasl.mechanism.controller.protocol string GSSAPI - read-only
    SASL mechanism towards the controller. Accepted, not used.
sasl.mechanism.inter.broker.protocol string GSSAPI - per-broker
    SASL mechanism among brokers. Accepted, not used.
sasl.oauthbearer.allow.unverified.audience boolean false - read-only
    Take tokens without checking their audience. Accepted, not used.
sasl.oauthbearer.allow.unverified.issuer boolean false - read-only
    Take tokens without checking their issuer. Accepted, not used.
sasl.oauthbearer.assertion.algorithm string RS256 any-case:ES256,RS256 read-only
    Signature algorithm of assertions. Accepted, not used.
sasl.oauthbearer.assertion.claim.aud string null - read-only
    Audience of assertions. Accepted, not used.
sasl.oauthbearer.assertion.claim.exp.seconds int 300 0..86400 read-only
    How long assertions are good. Accepted, not used.
sasl.oauthbearer.assertion.claim.iss string null - read-only
    Issuer of assertions. Accepted, not used.
sasl.oauthbearer.assertion.claim.jti.include boolean false - read-only
    Give assertions an id. Accepted, not used.
sasl.oauthbearer.assertion.claim.nbf.seconds int 60 0..3600 read-only
    How far back assertions become good. Accepted, not used.
sasl.oauthbearer.assertion.claim.sub string null - read-only
    Subject of assertions. Accepted, not used.
sasl.oauthbearer.assertion.file string null - read-only
    File of a ready assertion. Accepted, not used.
sasl.oauthbearer.assertion.private.key.file string null - read-only
    File of the key that signs assertions. Accepted, not used.
sasl.oauthbearer.assertion.private.key.passphrase password null - read-only
    Secret that opens the key that signs assertions. Accepted, not used.
sasl.oauthbearer.assertion.template.file string null - read-only
    File of an assertion's header and claims. Accepted, not used.
sasl.oauthbearer.client.credentials.client.id string null - read-only
    Client id at the token endpoint. Accepted, not used.
sasl.oauthbearer.client.credentials.client.secret password null - read-only
    Client secret at the token endpoint. Accepted, not used.
sasl.oauthbearer.clock.skew.seconds int 30 - read-only
    Difference of clocks allowed in tokens. Accepted, not used.
sasl.oauthbearer.expected.audience list "" - read-only
    Audiences a token may name. Accepted, not used.
sasl.oauthbearer.expected.issuer string null - read-only
    Issuer a token must name. Accepted, not used.
sasl.oauthbearer.jwks.endpoint.refresh.ms long 3600000 - read-only
    How often the key set is fetched. Accepted, not used.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms long 10000 - read-only
    Longest pause between fetches of the key set. Accepted, not used.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms long 100 - read-only
    First pause between fetches of the key set. Accepted, not used.
sasl.oauthbearer.jwks.endpoint.url string null - read-only
    Address of the key set. Accepted, not used.
sasl.oauthbearer.jwt.retriever.class class \
org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever - read-only
    Java class that fetches tokens. Accepted, not used.
sasl.oauthbearer.jwt.validator.class class \
org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator - read-only
    Java class that checks tokens. Accepted, not used.
sasl.oauthbearer.scope string null - read-only
    Scope of the tokens that are requested. Accepted, not used.
sasl.oauthbearer.scope.claim.name string scope - read-only
    Claim that holds a token's scope. Accepted, not used.
sasl.oauthbearer.sub.claim.name string sub - read-only
    Claim that holds a token's subject. Accepted, not used.
sasl.oauthbearer.token.endpoint.url string null - read-only
    Address that gives tokens. Accepted, not used.
sasl.server.callback.handler.class class null - read-only
    Java class that answers SASL for the broker. Accepted, not used.
sasl.server.max.receive.size int 524288 - read-only
    Largest request before authentication. Accepted, not used.
security.inter.broker.protocol string PLAINTEXT one-of:PLAINTEXT,SSL,SASL_PLAINTEXT,SASL_SSL \
read-only
    Security protocol that brokers use among themselves. Accepted, not used.
security.providers string null - read-only
    Java classes of security providers. Accepted, not used.
ssl.allow.dn.changes boolean false - read-only
    Allow another name in a renewed certificate. Accepted, not used.
ssl.allow.san.changes boolean false - read-only
    Allow other alternative names in a renewed certificate. Accepted, not used.
ssl.cipher.suites list "" - per-broker
    Cipher suites of TLS. Accepted, not used.
ssl.client.auth string none one-of:required,requested,none per-broker
    Whether clients must show a certificate. Accepted, not used.
ssl.enabled.protocols list TLSv1.2,TLSv1.3 - per-broker
    Versions of TLS that are taken. Accepted, not used.
ssl.endpoint.identification.algorithm string https - per-broker
    How a server's name is checked. Accepted, not used.
ssl.engine.factory.class class null - per-broker
    Java class that makes TLS engines. Accepted, not used.
ssl.key.password password null - per-broker
    Secret that opens the private key. Accepted, not used.
ssl.keymanager.algorithm string SunX509 - per-broker
    Java algorithm of key managers. Accepted, not used.
ssl.keystore.certificate.chain password null - per-broker
    Certificate chain as PEM text. Accepted, not used.
ssl.keystore.key password null - per-broker
    Private key as PEM text. Accepted, not used.
ssl.keystore.location string null - per-broker
    File of the key store. Accepted, not used.
ssl.keystore.password password null - per-broker
    Secret that opens the key store. Accepted, not used.
ssl.keystore.type string JKS - per-broker
    Format of the key store. Accepted, not used.
ssl.principal.mapping.rules string DEFAULT - read-only
    How certificate names become short names. Accepted, not used.
ssl.protocol string TLSv1.3 - per-broker
    Version of TLS that is spoken. Accepted, not used.
ssl.provider string null - per-broker
    Java security provider of TLS. Accepted, not used.
ssl.secure.random.implementation string null - per-broker
    Java source of randomness for TLS. Accepted, not used.
ssl.trustmanager.algorithm string PKIX - per-broker
    Java algorithm of trust managers. Accepted, not used.
ssl.truststore.certificates password null - per-broker
    Trusted certificates as PEM text. Accepted, not used.
ssl.truststore.location string null - per-broker
    File of the trust store. Accepted, not used.
ssl.truststore.password password null - per-broker
    Secret that opens the trust store. Accepted, not used.
ssl.truststore.type string JKS - per-broker
    Format of the trust store. Accepted, not used.
"""
