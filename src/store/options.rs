//! Storage options: their names, their values, and the messages for wrong values.
//!
//! The client libraries check values late or not at all: a key that ends with a line break panics
//! when it becomes a header, and a message about a wrong value repeats the value. So every value is
//! checked here, and a message names only the option.

#![cfg_attr(
    not(any(feature = "s3", feature = "azure", feature = "gcs", feature = "http")),
    allow(dead_code)
)]

use std::collections::HashMap;
use std::time::Duration;

use crate::error::{Error, Result};

/// `storage_options` of the caller: keys as in `object_store` and `deltalake`.
pub type StorageOptions = HashMap<String, String>;

/// Options of the HTTP clients of all services.
const CLIENT: &[&str] = &[
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "default_content_type",
    "disable_system_certificates",
    "http1_only",
    "http2_keep_alive_interval",
    "http2_keep_alive_timeout",
    "http2_keep_alive_while_idle",
    "http2_max_frame_size",
    "http2_only",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_ca_certificate",
    "proxy_excludes",
    "proxy_url",
    "randomize_addresses",
    "read_timeout",
    "timeout",
    "user_agent",
];

/// Options of S3, with and without `aws_`.
const S3: &[&str] = &[
    "access_key_id",
    "bucket",
    "bucket_name",
    "checksum_algorithm",
    "conditional_put",
    "container_authorization_token_file",
    "container_credentials_full_uri",
    "container_credentials_relative_uri",
    "copy_if_not_exists",
    "default_region",
    "disable_bulk_delete",
    "disable_tagging",
    "endpoint",
    "endpoint_url",
    "endpoint_url_sts",
    "imdsv1_fallback",
    "metadata_endpoint",
    "region",
    "request_payer",
    "role_arn",
    "role_session_name",
    "s3_express",
    "secret_access_key",
    "server_side_encryption",
    "session_token",
    "skip_signature",
    "sse_bucket_key_enabled",
    "sse_customer_key_base64",
    "sse_kms_key_id",
    "token",
    "unsigned_payload",
    "virtual_hosted_style_request",
    "web_identity_token_file",
];

/// Options of Azure in full.
const AZURE: &[&str] = &[
    "access_key",
    "account_key",
    "account_name",
    "authority_host",
    "authority_id",
    "azure_authority_host",
    "azure_authority_id",
    "azure_client_id",
    "azure_client_secret",
    "azure_container_name",
    "azure_credential_type",
    "azure_disable_tagging",
    "azure_endpoint",
    "azure_fabric_cluster_identifier",
    "azure_fabric_session_token",
    "azure_fabric_token_service_url",
    "azure_fabric_workload_host",
    "azure_federated_token_file",
    "azure_identity_endpoint",
    "azure_msi_endpoint",
    "azure_msi_resource_id",
    "azure_object_id",
    "azure_skip_signature",
    "azure_storage_access_key",
    "azure_storage_account_key",
    "azure_storage_account_name",
    "azure_storage_authority_host",
    "azure_storage_authority_id",
    "azure_storage_client_id",
    "azure_storage_client_secret",
    "azure_storage_container_name",
    "azure_storage_disable_tagging",
    "azure_storage_encryption_key",
    "azure_storage_endpoint",
    "azure_storage_federated_token_file",
    "azure_storage_master_key",
    "azure_storage_msi_endpoint",
    "azure_storage_msi_resource_id",
    "azure_storage_object_id",
    "azure_storage_sas_key",
    "azure_storage_sas_token",
    "azure_storage_skip_signature",
    "azure_storage_tenant_id",
    "azure_storage_token",
    "azure_storage_use_azure_cli",
    "azure_storage_use_emulator",
    "azure_storage_use_fabric_endpoint",
    "azure_tenant_id",
    "azure_use_azure_cli",
    "azure_use_fabric_endpoint",
    "bearer_token",
    "client_id",
    "client_secret",
    "container_name",
    "credential_type",
    "disable_tagging",
    "encryption_key",
    "endpoint",
    "fabric_cluster_identifier",
    "fabric_session_token",
    "fabric_token_service_url",
    "fabric_workload_host",
    "federated_token_file",
    "identity_endpoint",
    "master_key",
    "msi_endpoint",
    "msi_resource_id",
    "object_id",
    "object_store_use_emulator",
    "sas_key",
    "sas_token",
    "skip_signature",
    "tenant_id",
    "token",
    "use_azure_cli",
    "use_emulator",
    "use_fabric_endpoint",
];

/// Options of GCS, with and without `google_`.
const GCS: &[&str] = &[
    "application_credentials",
    "base_url",
    "bearer_token",
    "bucket",
    "bucket_name",
    "endpoint",
    "service_account",
    "service_account_key",
    "service_account_path",
    "skip_signature",
];

/// Options that other parts of deltafast read, and options of `deltalake` without effect here.
const OTHER: &[&str] = &[
    "max_buffer_size",
    "allow_unsafe_rename",
    "aws_access_key_id_dynamodb",
    "aws_ec2_metadata_disabled",
    "aws_ec2_metadata_service_endpoint",
    "aws_ec2_metadata_timeout",
    "aws_ec2_metadata_v1_disabled",
    "aws_endpoint_url_dynamodb",
    "aws_endpoint_url_s3",
    "aws_force_credential_load",
    "aws_iam_role_arn",
    "aws_iam_role_session_name",
    "aws_profile",
    "aws_region_dynamodb",
    "aws_s3_addressing_style",
    "aws_s3_allow_unsafe_rename",
    "aws_s3_assume_role_arn",
    "aws_s3_get_internal_server_error_retries",
    "aws_s3_locking_provider",
    "aws_s3_pool_idle_timeout_seconds",
    "aws_s3_role_session_name",
    "aws_secret_access_key_dynamodb",
    "aws_session_token_dynamodb",
    "aws_sts_endpoint",
    "aws_sts_pool_idle_timeout_seconds",
    "backoff_config.base",
    "backoff_config.init_backoff",
    "backoff_config.max_backoff",
    "credential_source",
    "delta_dynamo_billing_mode",
    "delta_dynamo_max_elapsed_request_time",
    "delta_dynamo_table_name",
    "hadoop_gateway",
    "hadoop_gateway_configuration",
    "hadoop_gateway_secret",
    "max_retries",
    "mount_allow_unsafe_rename",
    "object_store_concurrency_limit",
    "retry_timeout",
    "s3_locking_provider",
    "via_hadoop",
];

/// All names that are known, in lower case.
fn known_names() -> impl Iterator<Item = String> {
    let with = |prefix: &'static str, names: &'static [&'static str]| {
        names.iter().map(move |name| format!("{prefix}{name}"))
    };
    let client = ["", "aws_", "azure_", "google_"]
        .into_iter()
        .flat_map(move |prefix| with(prefix, CLIENT));
    client
        .chain(with("", S3))
        .chain(with("aws_", S3))
        .chain(with("", AZURE))
        .chain(with("", GCS))
        .chain(with("google_", GCS))
        .chain(with("", OTHER))
}

/// Warnings for the caller: unknown options, with the nearest name, and options without effect.
#[must_use]
pub fn option_warnings(options: &StorageOptions) -> Vec<String> {
    let mut keys: Vec<&String> = options.keys().collect();
    keys.sort_unstable();
    let warning = |key: &String| {
        let lower = key.trim().to_ascii_lowercase();
        if known_names().any(|name| name == lower) {
            return None;
        }
        let near = nearest(&lower)
            .map(|name| format!("; did you mean `{name}`?"))
            .unwrap_or_default();
        Some(format!(
            "the storage option `{key}` is not known and has no effect{near}"
        ))
    };
    keys.into_iter().filter_map(warning).collect()
}

/// The known name that differs least, if it differs in less than a third of its letters.
fn nearest(key: &str) -> Option<String> {
    let limit = (key.len() / 3).min(4);
    let distances = known_names()
        .filter(|name| name.len().abs_diff(key.len()) <= limit)
        .map(|name| (distance(key, &name), name));
    distances
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// The edit distance: letters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (n, x) in a.chars().enumerate() {
        let mut next = vec![n + 1];
        for (y, pair) in b.iter().zip(row.windows(2)) {
            let &[diagonal, above] = pair else { continue };
            let left = next.last().copied().unwrap_or_default();
            next.push(
                (diagonal + usize::from(x != *y))
                    .min(above + 1)
                    .min(left + 1),
            );
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

/// An option, by any of its names, without case.
pub(super) fn option<'a>(options: &'a StorageOptions, names: &[&str]) -> Option<&'a str> {
    options
        .iter()
        .find(|(key, _)| names.iter().any(|name| key.eq_ignore_ascii_case(name)))
        .map(|(_, value)| value.trim())
}

/// Whether an option is `true` or `1`.
pub(super) fn flag(options: &StorageOptions, names: &[&str]) -> bool {
    option(options, names).is_some_and(|text| matches!(parse_flag(text), Some(true)))
}

/// The kind of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    /// A value that is sent in a header.
    Text,
    /// A part of a host's name.
    Name,
    Url,
    Flag,
    Duration,
    Count,
    /// A path of a local file.
    File,
    /// A certificate or JSON, in many lines.
    Document,
}

impl ValueKind {
    /// The kind of the option with this canonical name.
    fn of(name: &str) -> Self {
        match name {
            "aws_region" | "aws_default_region" | "azure_storage_account_name" => Self::Name,
            "aws_endpoint"
            | "aws_endpoint_url_s3"
            | "aws_endpoint_url_sts"
            | "aws_metadata_endpoint"
            | "aws_container_credentials_full_uri"
            | "azure_storage_endpoint"
            | "azure_storage_authority_host"
            | "azure_msi_endpoint"
            | "azure_fabric_token_service_url"
            | "google_base_url"
            | "proxy_url" => Self::Url,
            "allow_http"
            | "allow_invalid_certificates"
            | "disable_system_certificates"
            | "http1_only"
            | "http2_only"
            | "http2_keep_alive_while_idle"
            | "randomize_addresses"
            | "aws_imdsv1_fallback"
            | "aws_virtual_hosted_style_request"
            | "aws_s3_express"
            | "aws_unsigned_payload"
            | "aws_skip_signature"
            | "aws_disable_tagging"
            | "aws_disable_bulk_delete"
            | "aws_sse_bucket_key_enabled"
            | "azure_storage_use_emulator"
            | "azure_use_fabric_endpoint"
            | "azure_use_azure_cli"
            | "azure_skip_signature"
            | "azure_disable_tagging"
            | "google_skip_signature" => Self::Flag,
            "connect_timeout"
            | "http2_keep_alive_interval"
            | "http2_keep_alive_timeout"
            | "pool_idle_timeout"
            | "read_timeout"
            | "timeout" => Self::Duration,
            "http2_max_frame_size" | "pool_max_idle_per_host" => Self::Count,
            "google_service_account"
            | "google_application_credentials"
            | "azure_federated_token_file"
            | "aws_web_identity_token_file"
            | "aws_container_authorization_token_file" => Self::File,
            "proxy_ca_certificate" | "google_service_account_key" => Self::Document,
            _ => Self::Text,
        }
    }

    /// Whether a value may be repeated in a message.
    fn is_harmless(self) -> bool {
        matches!(
            self,
            Self::Name | Self::Flag | Self::Duration | Self::Count | Self::File
        )
    }

    /// The value for the client. `what` is the option, for the message.
    fn check(self, what: &str, value: &str) -> Result<String> {
        let value = value.trim();
        let bad = |why: &str| Error::invalid(format!("{what} {why}"));
        if self != Self::Document && value.chars().any(char::is_control) {
            return Err(bad(
                "has a line end or another control character inside its value",
            ));
        }
        if !matches!(self, Self::Document | Self::File) && !value.is_ascii() {
            return Err(bad(
                "has a character in its value that is not ASCII, which no request can carry",
            ));
        }
        match self {
            Self::Name
                if !value
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')) =>
            {
                Err(bad("must be a name of letters, digits, `-`, `_` and `.`"))
            }
            Self::Url if !url::Url::parse(value).is_ok_and(|url| url.has_host()) => {
                Err(bad("is not a URL; give one like `http://host:9000`"))
            }
            Self::Flag => parse_flag(value)
                .map(|flag| flag.to_string())
                .ok_or_else(|| bad("must be `true` or `false`")),
            Self::Duration => match parse_duration(value) {
                Some(time) => Ok(format!("{}ms", time.as_millis())),
                None => Err(bad("is not a time such as `100ms`, `15s` or `2m`")),
            },
            Self::Count if value.parse::<u32>().is_err() => Err(bad("must be a whole number")),
            _ => Ok(value.to_owned()),
        }
    }
}

/// A value of temporary credentials, which no option holds; `what` names it in the message.
pub(super) fn check_credential(what: &str, value: &str) -> Result<String> {
    ValueKind::Text.check(what, value)
}

pub(super) fn parse_flag(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "on" | "yes" | "y" => Some(true),
        "0" | "false" | "off" | "no" | "n" => Some(false),
        _ => None,
    }
}

/// `15s`, `100ms`, `1m 30s`; seconds without a unit.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    let mut millis = 0_u64;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(
            rest.find(|c: char| !c.is_ascii_digit())
                .unwrap_or(rest.len()),
        );
        let tail = tail.trim_start();
        let (unit, tail) = tail.split_at(
            tail.find(|c: char| !c.is_ascii_alphabetic())
                .unwrap_or(tail.len()),
        );
        let factor = match unit {
            "ms" | "msec" | "millis" => 1,
            "" | "s" | "sec" | "secs" | "second" | "seconds" => 1_000,
            "m" | "min" | "mins" | "minute" | "minutes" => 60_000,
            "h" | "hr" | "hour" | "hours" => 3_600_000,
            "d" | "day" | "days" => 86_400_000,
            _ => return None,
        };
        millis = millis.checked_add(number.parse::<u64>().ok()?.checked_mul(factor)?)?;
        rest = tail.trim_start();
    }
    Some(Duration::from_millis(millis))
}

#[cfg(any(feature = "s3", feature = "azure", feature = "gcs", feature = "http"))]
pub(super) use cloud::{ServiceSettings, number, time};

#[cfg(any(feature = "s3", feature = "azure", feature = "gcs", feature = "http"))]
mod cloud {
    use std::str::FromStr;

    use super::{
        Duration, Error, Result, StorageOptions, ValueKind, option, parse_duration, parse_flag,
    };

    /// An option that is a duration.
    pub(in super::super) fn time(options: &StorageOptions, name: &str) -> Result<Option<Duration>> {
        let parse = |text| {
            parse_duration(text).ok_or_else(|| {
                Error::invalid(format!(
                    "the storage option `{name}` is not a time such as `100ms`, `15s` or `2m`"
                ))
            })
        };
        option(options, &[name]).map(parse).transpose()
    }

    /// An option that is a number.
    pub(in super::super) fn number<T: FromStr>(
        options: &StorageOptions,
        name: &str,
    ) -> Result<Option<T>> {
        let parse = |text: &str| {
            text.parse().map_err(|_| {
                Error::invalid(format!(
                    "the storage option `{name}` is not a usable number"
                ))
            })
        };
        option(options, &[name]).map(parse).transpose()
    }

    /// The checked settings of one store, those of the environment first.
    pub(in super::super) struct ServiceSettings<K> {
        pub(in super::super) values: Vec<(K, String)>,
    }

    impl<K: FromStr + AsRef<str> + PartialEq + Copy> ServiceSettings<K> {
        /// Takes the settings of this service from the environment and the options. Other names are
        /// ignored.
        pub(in super::super) fn new(
            options: &StorageOptions,
            prefix: &str,
            environment: impl Iterator<Item = (String, String)>,
        ) -> Result<Self> {
            let mut values = Vec::new();
            let mut variables: Vec<(String, String)> = environment
                .filter(|(name, value)| !value.trim().is_empty() && is_of(name, prefix))
                .collect();
            variables.sort_unstable();
            for (name, value) in &variables {
                if let Some((key, value)) =
                    setting::<K>(name, value, || format!("the environment variable `{name}`"))?
                {
                    values.push((key, value));
                }
            }
            let given = values.len();
            let mut names: Vec<(&String, &String)> = options.iter().collect();
            names.sort_unstable();
            for (name, value) in names {
                let Some((key, value)) =
                    setting::<K>(name, value, || format!("the storage option `{name}`"))?
                else {
                    continue;
                };
                if values
                    .iter()
                    .skip(given)
                    .any(|(other, held)| *other == key && *held != value)
                {
                    return Err(Error::invalid(format!(
                        "the storage option `{name}` has two values, under different names; give it once"
                    )));
                }
                values.push((key, value));
            }
            Ok(Self { values })
        }

        /// The effective value of a setting.
        pub(in super::super) fn get(&self, name: &str) -> Option<&str> {
            self.values
                .iter()
                .rev()
                .find(|(key, _)| key.as_ref() == name)
                .map(|(_, value)| value.as_str())
        }

        /// A client library's message, without values that may be secret.
        pub(in super::super) fn redacted(&self, text: &str) -> String {
            let secret = |(key, value): &&(K, String)| {
                value.len() >= 4 && !ValueKind::of(key.as_ref()).is_harmless()
            };
            self.values
                .iter()
                .filter(secret)
                .fold(text.to_owned(), |text, (_, value)| {
                    text.replace(value.as_str(), "…")
                })
        }
    }

    /// Variables of a service, and the two that have no prefix.
    fn is_of(name: &str, prefix: &str) -> bool {
        match prefix {
            "AZURE_" if name == "IDENTITY_ENDPOINT" => true,
            "GOOGLE_" if name == "SERVICE_ACCOUNT" => true,
            _ => !prefix.is_empty() && name.starts_with(prefix),
        }
    }

    /// An option in the service's library; `None` for other options.
    fn setting<K: FromStr + AsRef<str>>(
        name: &str,
        value: &str,
        what: impl Fn() -> String,
    ) -> Result<Option<(K, String)>> {
        let lower = name.trim().to_ascii_lowercase();
        let bad_flag = || Error::invalid(format!("{} must be `true` or `false`", what()));
        // Names that only `deltalake` and the tools of the services have.
        let (lower, value) = match lower.as_str() {
            "aws_sts_endpoint" => ("aws_endpoint_url_sts".to_owned(), value.to_owned()),
            "aws_ec2_metadata_service_endpoint" => {
                ("aws_metadata_endpoint".to_owned(), value.to_owned())
            }
            "aws_ec2_metadata_v1_disabled" => (
                "aws_imdsv1_fallback".to_owned(),
                (!parse_flag(value).ok_or_else(bad_flag)?).to_string(),
            ),
            "aws_s3_addressing_style" => {
                let style = value.trim().to_ascii_lowercase();
                if !matches!(style.as_str(), "virtual" | "path" | "auto") {
                    return Err(Error::invalid(format!(
                        "{} must be `virtual` or `path`",
                        what()
                    )));
                }
                (
                    "aws_virtual_hosted_style_request".to_owned(),
                    (style == "virtual").to_string(),
                )
            }
            "aws_request_payer" | "request_payer"
                if value.trim().eq_ignore_ascii_case("requester") =>
            {
                (lower, "true".to_owned())
            }
            "object_store_use_emulator" => {
                ("azure_storage_use_emulator".to_owned(), value.to_owned())
            }
            _ => (lower, value.to_owned()),
        };
        let found = lower.parse::<K>().ok().or_else(|| match lower.as_str() {
            "google_endpoint" | "endpoint" => "google_base_url".parse().ok(),
            other => format!("azure_{}", other.strip_prefix("azure_storage_")?)
                .parse()
                .ok(),
        });
        let Some(key) = found else { return Ok(None) };
        let kind = if key.as_ref() == "aws_request_payer" {
            ValueKind::Flag
        } else {
            ValueKind::of(key.as_ref())
        };
        let value = kind.check(&what(), &value)?;
        Ok(Some((key, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(pairs: &[(&str, &str)]) -> StorageOptions {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_mistyped_option_is_warned_of_with_the_nearest_name() {
        for (wrong, right) in [
            ("aws_acess_key_id", "aws_access_key_id"),
            ("AWS_SECRET_ACCES_KEY", "aws_secret_access_key"),
            ("aws_regoin", "aws_region"),
            ("azure_storage_acount_name", "azure_storage_account_name"),
            ("google_service_acount", "google_service_account"),
            ("alow_http", "allow_http"),
            ("max_retry", "max_retries"),
        ] {
            let warnings = option_warnings(&options(&[(wrong, "PASSWORD")]));
            assert!(
                matches!(warnings.as_slice(), [one] if one.contains(wrong) && one.contains(&format!("`{right}`")) && !one.contains("PASSWORD")),
                "{warnings:?}"
            );
        }
        assert_eq!(
            option_warnings(&options(&[("anon", "true")])),
            ["the storage option `anon` is not known and has no effect"]
        );
        assert!(
            option_warnings(&options(&[
                ("AWS_Region", "x"),
                ("AWS_PROFILE", "p"),
                ("timeout", "1s"),
                ("Endpoint", "http://h")
            ]))
            .is_empty()
        );
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, millis) in [
            ("15s", 15_000),
            ("100ms", 100),
            ("2m", 120_000),
            ("7", 7_000),
            ("1m 30s", 90_000),
            ("1h", 3_600_000),
            ("30 seconds", 30_000),
        ] {
            assert_eq!(
                parse_duration(text),
                Some(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for text in [
            "",
            "soon",
            "-1s",
            "1.5s",
            "s",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[cfg(feature = "s3")]
    mod settings {
        use super::*;
        use object_store::aws::AmazonS3ConfigKey;

        fn of(
            pairs: &[(&str, &str)],
            environment: &[(&str, &str)],
        ) -> Result<ServiceSettings<AmazonS3ConfigKey>> {
            ServiceSettings::new(
                &options(pairs),
                "AWS_",
                environment
                    .iter()
                    .map(|(key, value)| ((*key).to_owned(), (*value).to_owned())),
            )
        }

        #[test]
        fn space_around_a_value_is_none_of_it() {
            let found = of(
                &[("aws_secret_access_key", " key\r\n")],
                &[
                    ("AWS_REGION", "eu-west-1\n"),
                    ("AWS_ENDPOINT_URL", ""),
                    ("PATH", "x"),
                ],
            )
            .unwrap();
            assert_eq!(
                (
                    found.get("aws_secret_access_key"),
                    found.get("aws_region"),
                    found.values.len()
                ),
                (Some("key"), Some("eu-west-1"), 2)
            );
        }

        #[test]
        fn an_odd_value_is_refused_by_the_name_of_its_option() {
            for (name, value) in [
                ("aws_secret_access_key", "SEC\nRET"),
                ("AWS_SESSION_TOKEN", "SEC\u{0}RET"),
                ("aws_access_key_id", "SECRÉT"),
                ("token", "SEC\u{7f}RET"),
                ("aws_region", "SECRET/../x"),
                ("region", "SECRET@evil"),
                ("allow_http", "SECRET"),
                ("timeout", "SECRET"),
                ("pool_max_idle_per_host", "SECRET"),
                ("endpoint", "SECRET"),
                ("proxy_url", "u:SECRET@"),
                ("user_agent", "SEC\nRET"),
                ("AWS_S3_ADDRESSING_STYLE", "SECRET"),
                ("AWS_EC2_METADATA_V1_DISABLED", "SECRET"),
                ("aws_skip_signature", "SECRET"),
            ] {
                let error = of(&[(name, value)], &[]).err().unwrap().to_string();
                assert!(
                    error.contains(&format!("the storage option `{name}`"))
                        && !error.contains("SEC"),
                    "{error}"
                );
                if name.starts_with("AWS_") {
                    let error = of(&[], &[(name, value)]).err().unwrap().to_string();
                    assert!(
                        error.contains(&format!("the environment variable `{name}`"))
                            && !error.contains("SEC"),
                        "{error}"
                    );
                }
            }
            let error = of(&[("aws_region", "a"), ("REGION", "b")], &[])
                .err()
                .unwrap()
                .to_string();
            assert!(error.contains("two values"), "{error}");
            assert!(
                of(
                    &[("aws_region", "a"), ("REGION", "a")],
                    &[("AWS_REGION", "b")]
                )
                .is_ok()
            );
        }

        #[test]
        fn a_message_of_the_client_repeats_no_secret() {
            let found = of(
                &[
                    ("aws_secret_access_key", "hush"),
                    ("aws_region", "eu-west-1"),
                ],
                &[],
            )
            .unwrap();
            assert_eq!(
                found.redacted("cannot parse hush in eu-west-1"),
                "cannot parse … in eu-west-1"
            );
        }
    }

    /// All names of the client library are known here, so that none causes a warning.
    #[test]
    fn every_name_of_every_service_is_known() {
        assert!(known_names().count() > 200);
        #[cfg(feature = "s3")]
        for name in S3 {
            use object_store::aws::AmazonS3ConfigKey as Key;
            let parsed = [*name, &format!("aws_{name}")].map(|name| name.parse::<Key>().is_ok());
            assert!(parsed.iter().all(|is| *is), "{name}");
        }
        #[cfg(feature = "gcs")]
        for name in GCS.iter().filter(|name| **name != "endpoint") {
            use object_store::gcp::GoogleConfigKey as Key;
            assert!(
                name.parse::<Key>().is_ok() && format!("google_{name}").parse::<Key>().is_ok(),
                "{name}"
            );
        }
    }
}
