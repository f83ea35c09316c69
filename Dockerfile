# The service, `ptrnet serve`, on CPUs. The image has about 1.3 GB; torch takes 0.75 GB of it.
#
#   docker build -t ptrnet .
#   head -c 32 /dev/urandom | base64 > token && chmod 644 token
#   docker run -p 8000:8000 -v $PWD/token:/run/secrets/token:ro ptrnet

FROM python:3.11-slim AS build
COPY pyproject.toml constraints.txt README.md LICENSE /src/
COPY src /src/src
RUN python -m venv /opt/ptrnet \
    && /opt/ptrnet/bin/pip install --no-cache-dir --no-compile -c /src/constraints.txt \
        torch --index-url https://download.pytorch.org/whl/cpu \
    && /opt/ptrnet/bin/pip install --no-cache-dir --no-compile -c /src/constraints.txt "/src[serve]" \
    # Remove what the service does not need: headers and pip.
    && rm -rf /opt/ptrnet/lib/python3.11/site-packages/torch/include \
    && /opt/ptrnet/bin/pip uninstall --yes pip

FROM python:3.11-slim
RUN useradd --create-home --uid 10001 ptrnet
COPY --from=build /opt/ptrnet /opt/ptrnet
ENV PATH=/opt/ptrnet/bin:$PATH PYTHONUNBUFFERED=1
USER ptrnet
# Compile the kernels while the image is built, so that the first answer does not wait for them.
RUN python -c "from ptrnet import runtime; runtime.tune(); \
from ptrnet.kernels import use_compiled_kernels; use_compiled_kernels(); \
from ptrnet.serve.server import warm_up; from ptrnet import weights; \
warm_up(weights.load_named(weights.names()))"
EXPOSE 8000
# On SIGTERM the service answers the requests that it has accepted.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s CMD \
    ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
ENTRYPOINT ["ptrnet", "serve", "--host", "0.0.0.0", "--token-file", "/run/secrets/token"]
