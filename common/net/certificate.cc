#include "common/net/certificate.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "common/base/format.h"
#include "common/net/openssl_support.h"

namespace rekindle {
namespace {

constexpr std::size_t kCommonNameBytesMax = 64;  // X.520 ub-common-name
constexpr int kSerialBytes = 16;

std::unexpected<Error> openssl_failure(std::string_view doing) {
  return fail(ErrorCode::internal, format("{}: {}", doing, take_openssl_error("OpenSSL gave no reason")));
}

std::string text_of_bio(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return data == nullptr || size <= 0 ? std::string() : std::string(data, static_cast<std::size_t>(size));
}

Result<TlsKeyPair> to_pem(X509* certificate, EVP_PKEY* key) {
  const BioPointer certificate_bio(BIO_new(BIO_s_mem()));
  const BioPointer key_bio(BIO_new(BIO_s_mem()));
  if (!certificate_bio || !key_bio || PEM_write_bio_X509(certificate_bio.get(), certificate) != 1 ||
      PEM_write_bio_PKCS8PrivateKey(key_bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return openssl_failure("writing a certificate");
  }
  return TlsKeyPair{text_of_bio(certificate_bio.get()), text_of_bio(key_bio.get())};
}

bool set_serial(X509* certificate) {
  unsigned char bytes[kSerialBytes];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return false;
  bytes[0] = static_cast<unsigned char>((bytes[0] & 0x7f) | 0x40);  // positive, and of full length
  using NumberPointer = std::unique_ptr<BIGNUM, OpensslDeleter<BN_free>>;
  const NumberPointer number(BN_bin2bn(bytes, sizeof bytes, nullptr));
  return number && BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_validity(X509* certificate, const CertificateValidity& validity) {
  const auto set = [](ASN1_TIME* time, std::chrono::sys_seconds value) {
    return ASN1_TIME_set(time, static_cast<std::time_t>(value.time_since_epoch().count())) != nullptr;
  };
  return set(X509_getm_notBefore(certificate), validity.not_before) &&
         set(X509_getm_notAfter(certificate), validity.not_after);
}

bool set_subject(X509* certificate, const std::string& common_name) {
  X509_NAME* name = X509_get_subject_name(certificate);
  const std::string shortened = common_name.substr(0, kCommonNameBytesMax);
  const auto add = [&](const char* field, const std::string& text) {
    return X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(text.c_str()),
                                      static_cast<int>(text.size()), -1, 0) == 1;
  };
  return add("O", "rekindle") && (shortened.empty() || add("CN", shortened));
}

// `value` is a constant of ours, never text from outside: it is a small language of its own.
bool add_extension(X509* certificate, X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  using ExtensionPointer = std::unique_ptr<X509_EXTENSION, OpensslDeleter<X509_EXTENSION_free>>;
  const ExtensionPointer extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool is_plain_name(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char letter) { return letter > 0x20 && letter < 0x7f; });
}

Status add_name(GENERAL_NAMES* names, int kind, const std::string& text) {
  using NamePointer = std::unique_ptr<GENERAL_NAME, OpensslDeleter<GENERAL_NAME_free>>;
  using OctetsPointer = std::unique_ptr<ASN1_OCTET_STRING, OpensslDeleter<ASN1_OCTET_STRING_free>>;
  using TextPointer = std::unique_ptr<ASN1_IA5STRING, OpensslDeleter<ASN1_IA5STRING_free>>;
  NamePointer name(GENERAL_NAME_new());
  if (!name) return openssl_failure("naming a certificate");
  if (!is_plain_name(text)) {
    return fail(ErrorCode::invalid_input,
                format("a certificate cannot carry the name '{}': use printable ASCII", text));
  }
  if (kind == GEN_IPADD) {
    OctetsPointer address(a2i_IPADDRESS(text.c_str()));
    if (!address) {
      ERR_clear_error();
      return fail(ErrorCode::invalid_input, format("'{}' is no IP address", text));
    }
    GENERAL_NAME_set0_value(name.get(), kind, address.release());
  } else {
    TextPointer value(ASN1_IA5STRING_new());
    if (!value || ASN1_STRING_set(value.get(), text.data(), static_cast<int>(text.size())) != 1) {
      return openssl_failure("naming a certificate");
    }
    GENERAL_NAME_set0_value(name.get(), kind, value.release());
  }
  if (sk_GENERAL_NAME_push(names, name.get()) <= 0) return openssl_failure("naming a certificate");
  static_cast<void>(name.release());
  return {};
}

Status add_names(X509* certificate, const CertificateNames& names) {
  const GeneralNamesPointer alternatives(GENERAL_NAMES_new());
  if (!alternatives) return openssl_failure("naming a certificate");
  const std::pair<int, const std::vector<std::string>*> kinds[] = {
      {GEN_DNS, &names.dns}, {GEN_IPADD, &names.ip}, {GEN_URI, &names.uri}};
  for (const auto& [kind, texts] : kinds) {
    for (const std::string& text : *texts) {
      if (Status status = add_name(alternatives.get(), kind, text); !status) return status;
    }
  }
  if (X509_add1_ext_i2d(certificate, NID_subject_alt_name, alternatives.get(), 0, X509V3_ADD_DEFAULT) != 1) {
    return openssl_failure("naming a certificate");
  }
  return {};
}

struct Draft {
  X509Pointer certificate;
  KeyPointer key;
};

Result<Draft> make_draft(const std::string& common_name, const CertificateValidity& validity) {
  if (validity.not_after <= validity.not_before) {
    return fail(ErrorCode::invalid_input, "a certificate must end after it begins");
  }
  Draft draft{X509Pointer(X509_new()), KeyPointer(EVP_EC_gen("P-256"))};
  if (!draft.certificate || !draft.key || X509_set_version(draft.certificate.get(), X509_VERSION_3) != 1 ||
      !set_serial(draft.certificate.get()) || !set_validity(draft.certificate.get(), validity) ||
      !set_subject(draft.certificate.get(), common_name) ||
      X509_set_pubkey(draft.certificate.get(), draft.key.get()) != 1) {
    return openssl_failure("making a certificate");
  }
  return draft;
}

std::chrono::sys_seconds wall_time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return std::chrono::sys_seconds(std::chrono::seconds(timegm(&parts)));
}

}  // namespace

Result<TlsKeyPair> make_authority(const std::string& common_name, const CertificateValidity& validity) {
  Result<Draft> draft = make_draft(common_name, validity);
  if (!draft) return std::unexpected(draft.error());
  X509* certificate = draft->certificate.get();
  if (X509_set_issuer_name(certificate, X509_get_subject_name(certificate)) != 1 ||
      !add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !add_extension(certificate, certificate, NID_subject_key_identifier, "hash") ||
      X509_sign(certificate, draft->key.get(), EVP_sha256()) == 0) {
    return openssl_failure("making a certificate authority");
  }
  return to_pem(certificate, draft->key.get());
}

Result<TlsKeyPair> sign_certificate(const TlsKeyPair& authority, const LeafCertificate& leaf) {
  const Result<X509Pointer> issuer = certificate_of(authority.certificate_pem);
  if (!issuer) return std::unexpected(with_context(issuer.error(), "reading the certificate authority"));
  const Result<KeyPointer> issuer_key = private_key_of(authority.private_key_pem);
  if (!issuer_key) return std::unexpected(with_context(issuer_key.error(), "reading the certificate authority"));
  if (X509_check_private_key(issuer->get(), issuer_key->get()) != 1) {
    ERR_clear_error();
    return fail(ErrorCode::invalid_input,
                "the private key of the certificate authority belongs to another certificate");
  }
  if (leaf.names.dns.empty() && leaf.names.ip.empty() && leaf.names.uri.empty()) {
    return fail(ErrorCode::invalid_input, "a certificate without a name would be accepted by nobody");
  }
  Result<Draft> draft = make_draft(leaf.common_name, leaf.validity);
  if (!draft) return std::unexpected(draft.error());
  X509* certificate = draft->certificate.get();
  const char* usage = leaf.for_server && leaf.for_client ? "serverAuth,clientAuth"
                      : leaf.for_client                  ? "clientAuth"
                                                         : "serverAuth";
  if (X509_set_issuer_name(certificate, X509_get_subject_name(issuer->get())) != 1 ||
      !add_extension(certificate, issuer->get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(certificate, issuer->get(), NID_key_usage, "critical,digitalSignature") ||
      !add_extension(certificate, issuer->get(), NID_ext_key_usage, usage) ||
      !add_extension(certificate, issuer->get(), NID_subject_key_identifier, "hash") ||
      !add_extension(certificate, issuer->get(), NID_authority_key_identifier, "keyid")) {
    return openssl_failure("making a certificate");
  }
  if (Status status = add_names(certificate, leaf.names); !status) return std::unexpected(status.error());
  if (X509_sign(certificate, issuer_key->get(), EVP_sha256()) == 0) return openssl_failure("signing a certificate");
  return to_pem(certificate, draft->key.get());
}

Result<CertificateFacts> read_certificate(const std::string& pem) {
  const Result<X509Pointer> certificate = certificate_of(pem);
  if (!certificate) return std::unexpected(certificate.error());
  X509* read = certificate->get();

  CertificateFacts facts;
  const X509_NAME* subject = X509_get_subject_name(read);
  if (const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1); at >= 0) {
    facts.common_name = text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  }
  facts.names = names_of(read);
  facts.validity = {wall_time_of(X509_get0_notBefore(read)), wall_time_of(X509_get0_notAfter(read))};
  facts.is_authority = X509_check_ca(read) == 1;
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (X509_digest(read, EVP_sha256(), digest, &size) != 1) return openssl_failure("reading a certificate");
  constexpr char kDigits[] = "0123456789abcdef";
  for (unsigned int at = 0; at < size; ++at) {
    facts.sha256 += kDigits[digest[at] >> 4];
    facts.sha256 += kDigits[digest[at] & 15];
  }
  return facts;
}

}  // namespace rekindle
